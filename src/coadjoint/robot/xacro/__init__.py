"""The language of macros for XML that robot descriptions are often written in, expanded safely."""

from .expand import expand

__all__ = ["expand"]
