"""What every machine shares: steps, questions, child runs, and the run around them."""
