// A posterior probability, power / total, rounded, in units of 1 / scale.
BOTH i64 share_of(f64 power, f64 total, f64 scale) { return (i64)(power / total * scale + 0.5); }
