"""What a terminal shows and asks: screen, progress, forms, keys."""
