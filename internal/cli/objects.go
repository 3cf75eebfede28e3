package cli

import (
	"log/slog"

	"rankcache/internal/objects"
)

// OpenObjects returns the folder or bucket of a setting, nil if that is empty.
func OpenObjects(url *Secret, log *slog.Logger) (*objects.Store, error) {
	if url == nil || url.Get() == "" {
		return nil, nil
	}
	store, err := objects.Open(url.Get())
	if err != nil {
		return nil, Usagef("--%s: %w", url.Flag.Name, err)
	}
	if warning := store.Warning(); warning != "" {
		log.Warn(warning, "setting", "--"+url.Flag.Name)
	}
	return store, nil
}
