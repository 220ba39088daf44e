"""Label matrices as input of the methods: checked, encoded, with a count for each row."""
