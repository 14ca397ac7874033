package machine

import "time"

// MaxAhead bounds how far a server's clock may be ahead of both the newest entry and the writing process's clock.
const MaxAhead = time.Minute

// TimeBy is a dataset's time by a server's clock and the writer's own: never before its newest entry (zero: there is none), and, so that
// no clock by itself lets time run, at most [MaxAhead] after the writer's, unless that entry is. It reports false where the server is so
// far ahead of both that one of the two clocks is wrong: then nothing is written.
func TimeBy(newest, server, own time.Time) (now time.Time, believed bool) {
	micro := func(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
	newest, server, most := micro(newest), micro(server), micro(own.Add(MaxAhead))
	believed = !server.After(most) || !server.After(newest.Add(MaxAhead))
	if now = server; now.After(most) {
		now = most
	}
	if now.Before(newest) {
		now = newest
	}
	return now, believed
}
