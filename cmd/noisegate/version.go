package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

type versionCommand struct{}

func (*versionCommand) run(_ context.Context, a *app) error {
	fmt.Fprintln(a.Out, versionText())
	return nil
}

// versionText names the build as the Go tool recorded it.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "noisegate (unknown build)"
	}
	text := "noisegate " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			text += " " + s.Value[:12]
		}
	}
	return text + " " + info.GoVersion
}
