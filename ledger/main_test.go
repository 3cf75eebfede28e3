package ledger

import (
	"testing"

	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
