package parse

import "reflect"

// setEmptyField gives the i-th empty field of a parser's tree a value and tells which one it was; "" when there is none.
// It takes the value from samples when one fits.
func setEmptyField(root any, i int, samples func() []any) string {
	var touched string
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			walk(v.Elem())
		case reflect.Slice:
			for j := range v.Len() {
				walk(v.Index(j))
			}
		case reflect.Struct:
			for j := range v.NumField() {
				field, info := v.Field(j), v.Type().Field(j)
				switch {
				case !info.IsExported() || touched != "":
				case !field.IsZero():
					walk(field)
				case info.Name == "Location" || !canSet(field, samples()):
					// a place, or a choice that was not made
				default:
					if i--; i < 0 {
						touched = v.Type().Name() + "." + info.Name
						setSomething(field, samples())
					}
				}
			}
		}
	}
	walk(reflect.ValueOf(root))
	return touched
}

func canSet(v reflect.Value, samples []any) bool {
	_, fits := sampleFor(v, samples)
	return v.CanSet() && (fits || v.Kind() != reflect.Interface && v.Kind() != reflect.Struct && v.Kind() != reflect.Slice)
}

func sampleFor(v reflect.Value, samples []any) (reflect.Value, bool) {
	for _, sample := range samples {
		if value := reflect.ValueOf(sample); value.Type().AssignableTo(v.Type()) {
			return value, true
		}
	}
	return reflect.Value{}, false
}

func setSomething(v reflect.Value, samples []any) {
	if sample, ok := sampleFor(v, samples); ok {
		v.Set(sample)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("something")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		panic("no value for " + v.Type().String())
	}
}
