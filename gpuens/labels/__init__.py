"""Label matrices as methods take them: read, checked, encoded, with a count for each row."""
