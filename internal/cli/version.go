package cli

// Version is set by the build (-ldflags "-X rankcache/internal/cli.Version=…").
var Version = "dev"
