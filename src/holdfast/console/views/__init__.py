"""What each page of the console shows."""
