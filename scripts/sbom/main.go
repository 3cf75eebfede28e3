// Command sbom prints the Go modules that are linked into a program as a CycloneDX
// document, with their checksums. The same program gives the same bytes.
//
//	sbom FILE VERSION TIME
//
// It is a module of its own, so that the library is no requirement of rankcache.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom FILE VERSION TIME")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(file, version, at string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the modules of the program: %w", err)
	}
	program := cdx.Component{BOMRef: "program", Type: cdx.ComponentTypeApplication, Name: "rankcache", Version: version}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: at, Component: &program}
	components := []cdx.Component{{BOMRef: "go", Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		c, err := component(m)
		if err != nil {
			return err
		}
		components = append(components, c)
		if m.Path == "github.com/confluentinc/confluent-kafka-go/v2" { // which brings the C library of the same version
			components = append(components, cdx.Component{BOMRef: "librdkafka", Type: cdx.ComponentTypeLibrary, Name: "librdkafka",
				Version: m.Version, PackageURL: "pkg:github/confluentinc/librdkafka@" + m.Version})
		}
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom.Components, bom.Dependencies = &components, &[]cdx.Dependency{{Ref: "program", Dependencies: &refs}}
	return cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// component returns a linked module. Its hash is that of go.sum, which is of all its files.
func component(m *debug.Module) (cdx.Component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != 32 {
		return cdx.Component{}, fmt.Errorf("module %s has the checksum %q: build with -mod=readonly and without a workspace", m.Path, m.Sum)
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}}, nil
}
