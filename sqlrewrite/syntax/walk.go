package syntax

import "reflect"

// Each calls a function with every node of a part of a statement, each before what it holds. A node is passed as a pointer. Where the
// function returns true, what the node holds is left out.
func Each(part any, node func(any) (done bool)) { each(reflect.ValueOf(part), node) }

func each(v reflect.Value, node func(any) (done bool)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && (v.Kind() == reflect.Interface || !node(v.Interface())) {
			each(v.Elem(), node)
		}
	case reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), node)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			each(v.Field(i), node)
		}
	default: // words and numbers
	}
}

// Place makes all places in a query one: that at which another text names it.
func Place(q *Query, at Pos) { place(reflect.ValueOf(q), reflect.ValueOf(at)) }

func place(v, at reflect.Value) {
	switch {
	case v.Type() == at.Type():
		v.Set(at)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			place(v.Field(i), at)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			place(v.Index(i), at)
		}
	case (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil():
		place(v.Elem(), at)
	}
}

// Copy returns a query that shares no node with the one that it copies.
func Copy(q *Query) *Query { return copied(reflect.ValueOf(q)).Interface().(*Query) }

func copied(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(copied(v.Field(i)))
		}
	case v.Kind() == reflect.Slice && !v.IsNil():
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copied(v.Index(i)))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(copied(v.Elem()))
	case v.Kind() == reflect.Interface && !v.IsNil():
		out.Set(copied(v.Elem()))
	default:
		out.Set(v)
	}
	return out
}
