"""From a scheduled graph to LLVM text."""
