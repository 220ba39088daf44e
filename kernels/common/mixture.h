// The share of a power in the total, in units of 1 / scale, rounded.
BOTH i64 share_of(f64 power, f64 total, f64 scale) { return (i64)(power / total * scale + 0.5); }
