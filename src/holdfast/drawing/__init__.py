"""Plans as pictures: a layered layout, drawn as SVG and as text."""
