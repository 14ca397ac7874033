package statement

import pg "github.com/pganalyze/pg_query_go/v6"

// outputName is the name that PostgreSQL gives an output without an alias ("" for ?column?), and how sure it is of it: 2 of a name, 1 of
// the name of a type (FigureColname of parse_target.c).
func outputName(n *pg.Node) (string, int) {
	switch n := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return lastName(n.ColumnRef.Fields), 2
	case *pg.Node_AIndirection:
		if name := lastName(n.AIndirection.Indirection); name != "" {
			return name, 2
		}
		return outputName(n.AIndirection.Arg)
	case *pg.Node_FuncCall:
		return lastName(n.FuncCall.Funcname), 2
	case *pg.Node_AExpr:
		if n.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
	case *pg.Node_TypeCast:
		if name, sure := outputName(n.TypeCast.Arg); sure > 1 {
			return name, sure
		}
		return lastName(n.TypeCast.TypeName.Names), 1
	case *pg.Node_CollateClause:
		return outputName(n.CollateClause.Arg)
	case *pg.Node_GroupingFunc:
		return "grouping", 2
	case *pg.Node_SubLink:
		switch n.SubLink.SubLinkType {
		case pg.SubLinkType_EXISTS_SUBLINK:
			return "exists", 2
		case pg.SubLinkType_ARRAY_SUBLINK:
			return "array", 2
		case pg.SubLinkType_EXPR_SUBLINK:
			return scalarName(n.SubLink.Subselect.GetSelectStmt())
		default:
		}
	case *pg.Node_CaseExpr:
		if name, sure := outputName(n.CaseExpr.Defresult); sure > 1 {
			return name, sure
		}
		return "case", 1
	case *pg.Node_AArrayExpr:
		return "array", 2
	case *pg.Node_RowExpr:
		return "row", 2
	case *pg.Node_CoalesceExpr:
		return "coalesce", 2
	case *pg.Node_MinMaxExpr:
		if n.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return "least", 2
		}
		return "greatest", 2
	case *pg.Node_SqlvalueFunction:
		return valueName(n.SqlvalueFunction.Op)
	}
	return "", 0
}

// scalarName is the name of a scalar subquery's only output.
func scalarName(s *pg.SelectStmt) (string, int) {
	for s.GetLarg() != nil {
		s = s.Larg
	}
	if len(s.GetTargetList()) == 0 {
		return "column1", 2 // VALUES
	}
	target := s.TargetList[0].GetResTarget()
	if target.Name != "" {
		return target.Name, 2
	}
	name, _ := outputName(target.Val)
	return name, 2
}

// lastName is the last part of a name that is no star and no index.
func lastName(list []*pg.Node) string {
	name := ""
	for _, n := range list {
		if s := n.GetString_(); s != nil {
			name = s.Sval
		}
	}
	return name
}

func valueName(op pg.SQLValueFunctionOp) (string, int) {
	names := map[pg.SQLValueFunctionOp]string{
		pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:        "current_date",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME:        "current_time",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:      "current_time",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:   "current_timestamp",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N: "current_timestamp",
		pg.SQLValueFunctionOp_SVFOP_LOCALTIME:           "localtime",
		pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:         "localtime",
		pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:      "localtimestamp",
		pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:    "localtimestamp",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE:        "current_role",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_USER:        "current_user",
		pg.SQLValueFunctionOp_SVFOP_USER:                "user",
		pg.SQLValueFunctionOp_SVFOP_SESSION_USER:        "session_user",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:     "current_catalog",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:      "current_schema",
	}
	return names[op], 2
}
