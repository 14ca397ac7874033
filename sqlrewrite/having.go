package sqlrewrite

// having binds the filter over groups. It sees noisy values only (A10).
func (b *binder) having() error {
	if b.query.Having == nil {
		return nil
	}
	e, err := b.condition(blockScope{b}, b.query.Having)
	if err != nil {
		return err
	}
	b.bound.having = e
	return b.refuseWindow(b.query.Having, e, "HAVING")
}
