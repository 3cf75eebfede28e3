package servers_test

import (
	"testing"

	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
