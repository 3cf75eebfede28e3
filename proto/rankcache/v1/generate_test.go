package rankcachev1_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var update = flag.Bool("update", false, "write the generated files")

const folder = "rankcache/v1/"

var files = []string{folder + "boards.proto", folder + "scores.proto"}

func compile(t *testing.T) []protoreflect.FileDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{SourceInfoMode: protocompile.SourceInfoStandard,
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"../.."}})}
	compiled, err := compiler.Compile(t.Context(), files...)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]protoreflect.FileDescriptor, len(compiled))
	for i, f := range compiled {
		all[i] = f
	}
	return all
}

// TestGenerated: the Go files are what the .proto files make.
func TestGenerated(t *testing.T) {
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: proto.String("paths=source_relative")}
	seen := make(map[string]bool)
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i))
		}
		req.ProtoFile = append(req.ProtoFile, withComments(f))
	}
	for _, f := range compile(t) {
		add(f)
	}
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	made := plugin.Response().GetFile()
	if len(made) != len(files) {
		t.Fatalf("%d files are generated: %s", len(made), plugin.Response().GetError())
	}
	for _, f := range made {
		name := filepath.Base(f.GetName())
		if *update {
			if err := os.WriteFile(name, []byte(f.GetContent()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(name); err != nil || string(have) != f.GetContent() {
			t.Errorf("%s is not what is generated (%v): go test ./proto/rankcache/v1 -run TestGenerated -update", name, err)
		}
	}
}

// withComments is protodesc.ToFileDescriptorProto with the comments, which become Go's.
func withComments(f protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	if source, ok := f.(interface {
		FileDescriptorProto() *descriptorpb.FileDescriptorProto
	}); ok {
		return source.FileDescriptorProto()
	}
	return protodesc.ToFileDescriptorProto(f)
}

// TestLint checks what buf's standard rules ask for, and that everything has a comment.
func TestLint(t *testing.T) {
	for _, f := range compile(t) {
		if string(f.Package()) != strings.ReplaceAll(filepath.Dir(f.Path()), "/", ".") {
			t.Errorf("%s has the package %s", f.Path(), f.Package())
		}
		for i := range f.Services().Len() {
			lintService(t, f.Services().Get(i))
		}
		for i := range f.Enums().Len() {
			lintEnum(t, f.Enums().Get(i))
		}
		for i := range f.Messages().Len() {
			lintMessage(t, f.Messages().Get(i))
		}
	}
}

func lintService(t *testing.T, s protoreflect.ServiceDescriptor) {
	commented(t, s)
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		commented(t, m)
		if m.Input().Name() != m.Name()+"Request" || m.Output().Name() != m.Name()+"Response" {
			t.Errorf("%s takes %s and returns %s", m.FullName(), m.Input().Name(), m.Output().Name())
		}
	}
}

// words are where a word of a name begins.
var words = regexp.MustCompile("([a-z])([A-Z])")

func lintEnum(t *testing.T, e protoreflect.EnumDescriptor) {
	commented(t, e)
	prefix := strings.ToUpper(words.ReplaceAllString(string(e.Name()), "${1}_$2")) + "_"
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		commented(t, v)
		if !strings.HasPrefix(string(v.Name()), prefix) || (v.Number() == 0) != strings.HasSuffix(string(v.Name()), "_UNSPECIFIED") {
			t.Errorf("%s = %d", v.Name(), v.Number())
		}
	}
}

func lintMessage(t *testing.T, m protoreflect.MessageDescriptor) {
	if m.IsMapEntry() {
		return
	}
	commented(t, m)
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		commented(t, f)
		if string(f.Name()) != strings.ToLower(string(f.Name())) || int(f.Number()) > m.Fields().Len() {
			t.Errorf("%s = %d", f.FullName(), f.Number())
		}
	}
}

func commented(t *testing.T, d protoreflect.Descriptor) {
	if d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments == "" {
		t.Errorf("%s has no comment", d.FullName())
	}
}
