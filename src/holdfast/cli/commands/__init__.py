"""The commands of `holdfast`, one module per noun."""
