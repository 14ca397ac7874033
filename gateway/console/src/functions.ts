// The functions and words that the editor completes; docs/sql-coverage.md has all that work.

const aggregate = (label: string, detail: string) => ({ label, type: 'function', detail, apply: detail })
const scalar = (label: string) => ({ label, type: 'function', detail: 'of a row' })

export const functions = [
  aggregate('count', 'count(*)'), aggregate('sum', 'sum(x)'), aggregate('avg', 'avg(x)'), aggregate('min', 'min(x)'), aggregate('max', 'max(x)'),
  aggregate('median', 'median(x)'), aggregate('percentile_cont', 'percentile_cont(0.9) WITHIN GROUP (ORDER BY x)'),
  aggregate('stddev', 'stddev(x)'), aggregate('variance', 'variance(x)'), aggregate('corr', 'corr(y, x)'),
  aggregate('regr_slope', 'regr_slope(y, x)'),
  ...['abs', 'ceil', 'coalesce', 'date_trunc', 'extract', 'floor', 'greatest', 'least', 'length', 'lower', 'nullif', 'round', 'trunc', 'upper',
    'width_bucket'].map(scalar),
]

export const keywords = ['SELECT', 'FROM', 'WHERE', 'GROUP BY', 'HAVING', 'ORDER BY', 'LIMIT', 'AS', 'DESC', 'AND', 'OR', 'NOT', 'IN', 'IS NULL',
  'BETWEEN', 'LIKE', 'ILIKE', 'CASE WHEN', 'THEN', 'ELSE', 'END', 'JOIN', 'LEFT JOIN', 'ON', 'USING', 'DISTINCT', 'FILTER (WHERE ', 'OVER (', 'WITH',
  'UNION ALL', 'ROLLUP', 'INTERVAL', 'DATE'].map(label => ({ label, type: 'keyword', boost: -1 }))
