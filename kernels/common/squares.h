// Squared distances of points and landmarks, four features at a time: the sum of their squares, in an order that both
// devices have. A number is a float, or several of them in a vector.
template <typename Number>
BOTH Number sum_of_squares(Number e, Number f, Number g, Number h) {
    return (e * e + f * f) + (g * g + h * h);
}
