package sidecar

import (
	"regexp"
	"strings"
	"testing"
)

// TestRefusalsOfSplitBoardsAreInTheDocument: what a split board does not answer is 422 with a code that the document lists.
func TestRefusalsOfSplitBoardsAreInTheDocument(t *testing.T) {
	enum := regexp.MustCompile(`enum: \[rank_mode_refused[^\]]*\]`).FindString(OpenAPI())
	if !strings.Contains(enum, "not_supported") {
		t.Errorf("the codes of 422 of boards are %q", enum)
	}
}
