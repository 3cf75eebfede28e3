package cli

var Version = "dev" // set by the build (-ldflags "-X rankcache/internal/cli.Version=…")
