"""The page that computes: a robot in one HTML file, its functions as JavaScript. `report` writes it, the studio serves it."""
