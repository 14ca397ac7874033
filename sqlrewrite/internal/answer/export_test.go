package answer

// PointsOf is the half-width of a useful share, in the unit of an output.
var PointsOf = pointsOf
