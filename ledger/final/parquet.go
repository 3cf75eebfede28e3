package final

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"rankcache"
	"rankcache/wire"
)

const groupRows = 100_000 // how many rows of a file stand in one group, a page for each column

// The file is written with parquet-go's format package alone: its writer would add 4 MB to the binary.

type parquetColumn struct {
	name  string
	kind  format.Type
	plain func(dst []byte, rank int, e *rankcache.Entry) []byte
}

// columnsOf returns a final's columns, with data if members may have any. Scores are integers where shown so.
func columnsOf(form rankcache.ScoreForm, hasData bool, rows []rankcache.Entry) []parquetColumn {
	score := parquetColumn{"score", format.Double, func(dst []byte, _ int, e *rankcache.Entry) []byte {
		return appendDouble(dst, form.Shown(e.Score))
	}}
	const beyond = 1 << 63
	if n := len(rows); form.Integer() && (n == 0 || math.Abs(form.Shown(rows[0].Score)) < beyond && math.Abs(form.Shown(rows[n-1].Score)) < beyond) {
		score.kind, score.plain = format.Int64, func(dst []byte, _ int, e *rankcache.Entry) []byte {
			return binary.LittleEndian.AppendUint64(dst, uint64(int64(form.Shown(e.Score)))) // #nosec G115 -- its bits
		}
	}
	columns := []parquetColumn{
		{"rank", format.Int64, func(dst []byte, rank int, _ *rankcache.Entry) []byte {
			return binary.LittleEndian.AppendUint64(dst, uint64(rank)) // #nosec G115 -- from 1
		}},
		{"member", format.ByteArray, func(dst []byte, _ int, e *rankcache.Entry) []byte {
			member, _ := rankcache.SplitData(e.Member)
			return appendText(dst, member)
		}},
		score,
		{"raw", format.Double, func(dst []byte, _ int, e *rankcache.Entry) []byte { return appendDouble(dst, e.Score) }},
	}
	if hasData {
		columns = append(columns, parquetColumn{"data", format.ByteArray, func(dst []byte, _ int, e *rankcache.Entry) []byte {
			_, data := rankcache.SplitData(e.Member)
			return appendText(dst, data)
		}})
	}
	return columns
}

func appendText(dst []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(text))), text...) // #nosec G115 -- some hundred bytes at most
}

func appendDouble(dst []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

const parquetMagic = "PAR1"

type parquetFile struct {
	columns []parquetColumn
	data    []byte
	meta    format.FileMetaData
	codec   *zstd.Encoder
	plain   []byte // of the page under construction
}

// encode returns the rows, by rank, as a Parquet file whose metadata is the board's. Equal rows give equal bytes.
func encode(f *wire.Final, hasData bool, rows []rankcache.Entry) ([]byte, error) {
	codec, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer codec.Close()
	columns := columnsOf(f.Form, hasData, rows)
	p := &parquetFile{columns: columns, data: []byte(parquetMagic), codec: codec, meta: format.FileMetaData{Version: 1, Schema: parquetSchema(columns), NumRows: int64(len(rows)),
		CreatedBy: "rankcache", KeyValueMetadata: about(f)}}
	for from := 0; from < len(rows); from += groupRows {
		if err := p.group(rows[from:min(from+groupRows, len(rows))], from+1); err != nil {
			return nil, err
		}
	}
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), &p.meta)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	p.data = append(p.data, foot...)
	return append(binary.LittleEndian.AppendUint32(p.data, uint32(len(foot))), parquetMagic...), nil // #nosec G115 -- some KB
}

func parquetSchema(columns []parquetColumn) []format.SchemaElement {
	schema := []format.SchemaElement{{Name: "final", NumChildren: thrift.New(int32(len(columns)))}} // #nosec G115 -- four
	for _, c := range columns {
		e := format.SchemaElement{Name: c.name, Type: thrift.New(c.kind), RepetitionType: thrift.New(format.Required)}
		if c.kind == format.ByteArray {
			e.ConvertedType, e.LogicalType = thrift.New(deprecated.UTF8), format.LogicalType{Value: new(format.StringType)}
		}
		schema = append(schema, e)
	}
	return schema
}

func about(f *wire.Final) []format.KeyValue {
	return []format.KeyValue{{Key: "board", Value: string(f.Board)}, {Key: "class", Value: f.Class}, {Key: "dims", Value: string(wire.AppendDims(nil, f.Dims))},
		{Key: "tag", Value: f.Tag}, {Key: "start", Value: strconv.FormatInt(f.Start, 10)}, {Key: "end", Value: strconv.FormatInt(f.End, 10)},
		{Key: "run", Value: strconv.FormatUint(f.Run, 10)}, {Key: "seq", Value: strconv.FormatUint(f.Seq, 10)}, {Key: "sum", Value: fmt.Sprintf("%012x", f.Sum)},
		{Key: "members", Value: strconv.Itoa(f.Members)}}
}

// group appends rows, of which the first has a rank.
func (p *parquetFile) group(rows []rankcache.Entry, first int) error {
	n := int64(len(rows))
	g := format.RowGroup{NumRows: n, FileOffset: int64(len(p.data)), Ordinal: int16(len(p.meta.RowGroups))} // #nosec G115 -- 2,000,000 rows are 20 groups
	for _, c := range p.columns {
		offset := int64(len(p.data))
		plain, err := p.page(c, rows, first)
		if err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
		size := int64(len(p.data)) - offset
		g.Columns = append(g.Columns, format.ColumnChunk{FileOffset: offset, MetaData: format.ColumnMetaData{Type: c.kind, Encoding: []format.Encoding{format.Plain}, PathInSchema: []string{c.name},
			Codec: format.Zstd, NumValues: n, TotalUncompressedSize: plain, TotalCompressedSize: size, DataPageOffset: offset}})
		g.TotalByteSize += plain
		g.TotalCompressedSize += size
	}
	p.meta.RowGroups = append(p.meta.RowGroups, g)
	return nil
}

// page appends one column of rows and returns how long it is before compression, header included.
func (p *parquetFile) page(c parquetColumn, rows []rankcache.Entry, first int) (int64, error) {
	p.plain = p.plain[:0]
	for i := range rows {
		p.plain = c.plain(p.plain, first+i, &rows[i])
	}
	packed := p.codec.EncodeAll(p.plain, nil)
	head, err := thrift.Marshal(new(thrift.CompactProtocol), &format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(len(p.plain)), CompressedPageSize: int32(len(packed)), // #nosec G115 -- 100,000 short values
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: int32(len(rows)), Encoding: format.Plain, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})}) // #nosec G115 -- 100,000 at most
	p.data = append(append(p.data, head...), packed...)
	return int64(len(head) + len(p.plain)), err
}
