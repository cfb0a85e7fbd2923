/* pages.c - a column of a row group: its pages one after the other.
 *
 * Source: parquet-format, README.md "Data Pages" and parquet.thrift. A page has levels and values. A repetition level
 * of 0 begins a row; a definition level says how much of the way to a value is there. Values that are not there take no
 * room in a page, and do here.
 */
#include "container/input/parquet/bits.h"
#include "container/input/parquet/codec.h"
#include "container/input/parquet/thrift.h"
#include "container/input/parquet/values.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PAGE_DATA = 0, PAGE_INDEX = 1, PAGE_DICTIONARY = 2, PAGE_DATA_2 = 3 };
enum { LEVELS_RLE = 3 };

typedef struct page {
    int type, encoding;
    int def_encoding, rep_encoding;
    int64_t n_bytes, n_stored; /* unpacked, and in the file */
    int64_t n_values;
    int64_t def_bytes, rep_bytes; /* version 2 */
    bool is_packed, has_crc;
    uint32_t crc;
} page;

typedef struct page_walk {
    const parquet_column *column;
    const parquet_chunk *chunk;
    int64_t n_rows;            /* that the group has */
    int64_t most;              /* rows that are wanted; 0: all */
    int64_t n_levels_left;     /* of all values that it has, in lists too */
    const uint8_t *p, *end;    /* what is left of the chunk */
    parquet_values dictionary; /* of the raw form */
    bool has_dictionary;
    parquet_room *room;
    bool all_there; /* all values of the page are, so that it needs no levels */
    parquet_values *out;
} page_walk;

static int page_damaged(const char *what, ty_error *err)
{
    return ty_error_set(err, TY_E_DATA, "a page is damaged: %s", what);
}

/* ---- headers ---- */

/* DataPageHeader, DictionaryPageHeader: values, encoding, encodings of levels. */
static void page_header_1(thrift *t, page *g)
{
    thrift_field f = {0};
    while (thrift_next(t, &f)) {
        int64_t v = f.type == THRIFT_I32 ? thrift_int(t) : 0;
        if (f.type != THRIFT_I32)
            thrift_skip(t, f.type);
        else if (f.id == 1)
            g->n_values = v;
        else if (f.id == 2)
            g->encoding = (int)v;
        else if (f.id == 3)
            g->def_encoding = (int)v;
        else if (f.id == 4)
            g->rep_encoding = (int)v;
    }
}

static void page_header_2(thrift *t, page *g)
{
    thrift_field f = {0};
    while (thrift_next(t, &f)) {
        int64_t v = f.type == THRIFT_I32 ? thrift_int(t) : 0;
        if (f.id == 7 && (f.type == THRIFT_TRUE || f.type == THRIFT_FALSE))
            g->is_packed = f.type == THRIFT_TRUE;
        else if (f.type != THRIFT_I32)
            thrift_skip(t, f.type);
        else if (f.id == 1)
            g->n_values = v;
        else if (f.id == 4)
            g->encoding = (int)v;
        else if (f.id == 5)
            g->def_bytes = v;
        else if (f.id == 6)
            g->rep_bytes = v;
    }
}

static int page_header(page_walk *w, page *g, ty_error *err)
{
    thrift t = {.p = w->p, .end = w->end};
    thrift_field f = {0};
    *g = (page){.type = -1, .encoding = -1, .def_encoding = LEVELS_RLE, .rep_encoding = LEVELS_RLE, .is_packed = true};
    while (thrift_next(&t, &f)) {
        if ((f.id == 5 || f.id == 7) && f.type == THRIFT_STRUCT)
            page_header_1(&t, g);
        else if (f.id == 8 && f.type == THRIFT_STRUCT)
            page_header_2(&t, g);
        else if (f.type != THRIFT_I32 || f.id > 4)
            thrift_skip(&t, f.type);
        else if (f.id == 1)
            g->type = (int)thrift_int(&t);
        else if (f.id == 2)
            g->n_bytes = thrift_int(&t);
        else if (f.id == 3)
            g->n_stored = thrift_int(&t);
        else
            g->crc = (uint32_t)thrift_int(&t), g->has_crc = true;
    }
    if (t.failed)
        return page_damaged("its header ends early", err);
    w->p = t.p;
    if (g->n_stored < 0 || g->n_stored > w->end - w->p || g->n_bytes < 0 || g->n_bytes > INT32_MAX)
        return page_damaged("it ends behind its column", err);
    if (g->n_values < 0 || g->n_values > INT32_MAX)
        return page_damaged("it has no number of values", err);
    if (g->has_crc && g->crc != (uint32_t)crc32(0, w->p, (uInt)g->n_stored))
        return page_damaged("its checksum does not match", err);
    return 0;
}

/* ---- levels ---- */

static int page_level_room(page_walk *w, int64_t n, ty_error *err)
{
    n = n > 0 ? n : 1;
    if (n <= w->room->n_levels)
        return 0;
    free(w->room->level);
    w->room->level = malloc(2 * (size_t)n * sizeof *w->room->level);
    w->room->n_levels = w->room->level ? n : 0;
    return w->room->level ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for the levels of %lld values", (long long)n);
}

/* One run of the highest level: of a column without lists that is the usual page. */
static bool page_is_full(const uint8_t *p, int64_t n_bytes, int most, int64_t n)
{
    uint64_t head = 0;
    int64_t at = 0;
    for (int shift = 0; at < n_bytes && shift < 63; shift += 7) {
        head |= (uint64_t)(p[at] & 0x7f) << shift;
        if (p[at++] < 0x80)
            break;
    }
    return at + 1 == n_bytes && (head & 1) == 0 && head >> 1 >= (uint64_t)n && p[at] == most;
}

/* Levels up to `most`, which take the bytes [p, p + n_bytes). */
static int page_levels(const uint8_t *p, int64_t n_bytes, int most, int64_t n, uint32_t *out, ty_error *err)
{
    if (!bits_hybrid(&p, p + n_bytes, bits_width((uint32_t)most), n, out))
        return page_damaged("it has fewer levels than values", err);
    for (int64_t i = 0; i < n; i++)
        if (out[i] > (uint32_t)most)
            return page_damaged("a level is higher than any can be", err);
    return 0;
}

/* Where levels stand. */
typedef struct page_slice {
    const uint8_t *p;
    int64_t n;
} page_slice;

/* Version 1 has their length before them. */
static int page_slice_1(const uint8_t **p, const uint8_t *end, int encoding, int most, page_slice *out, ty_error *err)
{
    uint32_t length;
    *out = (page_slice){*p, 0};
    if (most == 0)
        return 0;
    if (encoding != LEVELS_RLE)
        return ty_error_set(err, TY_E_DATA,
                            "its levels are packed bits without runs, as nobody has written them since 2013");
    if (end - *p < 4)
        return page_damaged("its levels end early", err);
    memcpy(&length, *p, 4);
    *p += 4;
    if (length > (size_t)(end - *p))
        return page_damaged("its levels end early", err);
    *out = (page_slice){*p, length};
    *p += length;
    return 0;
}

static int page_take_levels(page_walk *w, const page *g, page_slice rep, page_slice def, ty_error *err)
{
    const parquet_column *c = w->column;
    w->all_there = c->max_rep == 0 && (c->max_def == 0 || page_is_full(def.p, def.n, c->max_def, g->n_values));
    if (w->all_there)
        return 0;
    if (page_level_room(w, g->n_values, err) < 0)
        return -1;
    uint32_t *level = w->room->level;
    if (c->max_rep > 0 && page_levels(rep.p, rep.n, c->max_rep, g->n_values, level + w->room->n_levels, err) < 0)
        return -1;
    return c->max_def > 0 ? page_levels(def.p, def.n, c->max_def, g->n_values, level, err) : 0;
}

/* ---- elements ---- */

static int page_note_null(parquet_values *v, ty_error *err)
{
    if (v->null != NULL)
        return 0;
    v->null = calloc((size_t)v->room + 1, 1);
    return v->null ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %lld values of it", (long long)v->room);
}

/* The values behind those of the pages before move to where their elements are; from the last on, so that none is
 * overwritten. */
static void page_spread(parquet_values *v, const uint32_t *def, int64_t n_levels, const parquet_column *c,
                        int64_t n_elements, int64_t n_there)
{
    size_t each = parquet_form_bytes(v->form);
    char *base = (char *)v->v + (size_t)v->n * each;
    int64_t to = n_elements, from = n_there;
    for (int64_t i = n_levels - 1; i >= 0; i--) {
        if (c->max_rep > 0 && def[i] < (uint32_t)c->list_def)
            continue;
        bool is_there = def[i] == (uint32_t)c->max_def;
        to--;
        if (is_there && --from != to)
            memcpy(base + (size_t)to * each, base + (size_t)from * each, each);
        else if (!is_there)
            memset(base + (size_t)to * each, 0, each);
        v->null[v->n + to] = !is_there;
    }
}

/* Where rows begin, in elements. */
static int page_rows(page_walk *w, const uint32_t *def, const uint32_t *rep, int64_t n_levels, ty_error *err)
{
    parquet_values *v = w->out;
    int64_t at = v->n;
    if (v->first == NULL) {
        v->first = calloc((size_t)w->n_rows + 1, sizeof *v->first);
        if (v->first == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %lld rows", (long long)w->n_rows);
    }
    for (int64_t i = 0; i < n_levels; i++) {
        if (rep[i] == 0 && v->n_rows == w->n_rows)
            return page_damaged("it has more rows than its row group", err);
        if (rep[i] == 0)
            v->first[v->n_rows++] = at;
        else if (v->n_rows == 0)
            return page_damaged("its first value belongs to a row before it", err);
        at += def[i] >= (uint32_t)w->column->list_def;
    }
    v->first[v->n_rows] = at;
    return 0;
}

static int page_put(page_walk *w, const page *g, const uint8_t *p, const uint8_t *end, ty_error *err)
{
    const parquet_column *c = w->column;
    parquet_values *v = w->out;
    const uint32_t *def = w->room->level, *rep = w->all_there ? NULL : def + w->room->n_levels;
    int64_t n = g->n_values, n_there = n, n_elements = n;
    for (int64_t i = 0; !w->all_there && c->max_def > 0 && i < n; i++) {
        n_there -= def[i] != (uint32_t)c->max_def;
        n_elements -= c->max_rep > 0 && def[i] < (uint32_t)c->list_def;
    }
    if (parquet_reserve(v, n_elements, err) < 0 ||
        parquet_decode(g->encoding, p, end, n_there, c, w->has_dictionary ? &w->dictionary : NULL, v, err) < 0 ||
        (n_there < n_elements && page_note_null(v, err) < 0) || (c->max_rep > 0 && page_rows(w, def, rep, n, err) < 0))
        return -1;
    if (v->null != NULL && n_there < n_elements)
        page_spread(v, def, n, c, n_elements, n_there);
    else if (v->null != NULL)
        memset(v->null + v->n, 0, (size_t)n_elements);
    v->n += n_elements;
    v->n_rows += c->max_rep == 0 ? n : 0;
    return 0;
}

/* ---- pages ---- */

static int page_data_1(page_walk *w, const page *g, ty_error *err)
{
    const parquet_column *c = w->column;
    const uint8_t *p, *end;
    page_slice rep, def;
    if (parquet_unpack(w->chunk->codec, w->p, (size_t)g->n_stored, (size_t)g->n_bytes, w->room, &p, err) < 0)
        return -1;
    end = p + g->n_bytes;
    if (page_slice_1(&p, end, g->rep_encoding, c->max_rep, &rep, err) < 0 ||
        page_slice_1(&p, end, g->def_encoding, c->max_def, &def, err) < 0 || page_take_levels(w, g, rep, def, err) < 0)
        return -1;
    return page_put(w, g, p, end, err);
}

/* Levels stand before what is packed. */
static int page_data_2(page_walk *w, const page *g, ty_error *err)
{
    int64_t levels = g->rep_bytes + g->def_bytes;
    if (g->rep_bytes < 0 || g->def_bytes < 0 || levels > g->n_stored || levels > g->n_bytes)
        return page_damaged("its levels end behind it", err);
    page_slice rep = {w->p, g->rep_bytes}, def = {w->p + g->rep_bytes, g->def_bytes};
    if (page_take_levels(w, g, rep, def, err) < 0)
        return -1;
    const uint8_t *p;
    int codec = g->is_packed && g->n_stored > levels ? w->chunk->codec : 0;
    int64_t n = g->n_stored - levels, n_bytes = codec == 0 ? n : g->n_bytes - levels;
    if (parquet_unpack(codec, w->p + levels, (size_t)n, (size_t)n_bytes, w->room, &p, err) < 0)
        return -1;
    return page_put(w, g, p, p + n_bytes, err);
}

static int page_dictionary(page_walk *w, const page *g, ty_error *err)
{
    const uint8_t *bytes;
    if (w->has_dictionary)
        return page_damaged("it is a second dictionary", err);
    if (parquet_unpack(w->chunk->codec, w->p, (size_t)g->n_stored, (size_t)g->n_bytes, w->room, &bytes, err) < 0)
        return -1;
    parquet_values *d = &w->dictionary;
    int rc = parquet_reserve(d, g->n_values, err);
    if (rc == 0)
        rc = parquet_decode(0, bytes, bytes + g->n_bytes, g->n_values, w->column, NULL, d, err);
    d->n = g->n_values;
    w->has_dictionary = true;
    if (rc < 0 || d->form != PARQUET_AS_BYTES)
        return rc;
    /* What values share lies in front of those that are written out. */
    if (w->out->n_bytes > 0)
        return page_damaged("a dictionary stands behind values", err);
    if (parquet_reserve_bytes(w->out, d->n_bytes, err) < 0)
        return -1;
    if (d->n_bytes > 0)
        memcpy(w->out->bytes, d->bytes, d->n_bytes);
    w->out->n_bytes = d->n_bytes;
    return 0;
}

/* Before anything is allocated for them. */
static int page_check_values(page_walk *w, const page *g, ty_error *err)
{
    int64_t left = w->column->max_rep > 0 ? w->n_levels_left : w->n_rows - w->out->n_rows;
    if (g->type != PAGE_DATA && g->type != PAGE_DATA_2)
        return 0;
    if (g->n_values > left)
        return page_damaged("it has more values than are left of its row group", err);
    w->n_levels_left -= g->n_values;
    return 0;
}

static int page_one(page_walk *w, ty_error *err)
{
    page g;
    int rc = page_header(w, &g, err);
    if (rc < 0 || page_check_values(w, &g, err) < 0)
        return -1;
    if (g.type == PAGE_DATA)
        rc = page_data_1(w, &g, err);
    else if (g.type == PAGE_DATA_2)
        rc = page_data_2(w, &g, err);
    else if (g.type == PAGE_DICTIONARY)
        rc = page_dictionary(w, &g, err);
    w->p += g.n_stored;
    return rc;
}

static int page_walk_all(page_walk *w, ty_error *err)
{
    parquet_values *v = w->out;
    int64_t wanted = w->most > 0 && w->most < w->n_rows ? w->most : w->n_rows;
    /* Of a list the last row ends where the next begins, or nothing is left. */
    while (w->p < w->end && (w->column->max_rep > 0 ? w->n_levels_left > 0 && v->n_rows <= wanted : v->n_rows < wanted))
        if (page_one(w, err) < 0)
            return -1;
    if (v->n_rows < wanted)
        return ty_error_set(err, TY_E_DATA, "it has %lld of the row group's %lld rows", (long long)v->n_rows,
                            (long long)w->n_rows);
    if (parquet_reserve(v, 0, err) < 0)
        return -1;
    if (w->column->max_rep > 0 && v->first == NULL && (v->first = calloc(1, sizeof *v->first)) == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for its rows");
    return parquet_convert(w->column, v, err);
}

static int page_refuse(const parquet_file *f, int group, int column, ty_error *err)
{
    const parquet_column *c = &f->column[column];
    const parquet_chunk *chunk = &f->group[group].chunk[column];
    if (c->odd)
        return ty_error_set(err, TY_E_DATA, "%s, which is not read", c->odd);
    if (chunk->is_elsewhere)
        return ty_error_set(err, TY_E_DATA, "its pages lie in another file");
    if (chunk->is_encrypted)
        return ty_error_set(err, TY_E_DATA, "it is encrypted");
    return f->group[group].n_rows <= PARQUET_MAX_ELEMENTS
               ? 0
               : ty_error_set(err, TY_E_LIMIT, "a row group has %lld rows, expected at most %lld",
                              (long long)f->group[group].n_rows, (long long)PARQUET_MAX_ELEMENTS);
}

void parquet_room_fini(parquet_room *room)
{
    free(room->page);
    free(room->level);
    free(room->chunk);
    *room = (parquet_room){0};
}

int parquet_read_chunk(const parquet_file *f, int group, int column, const uint8_t *bytes, size_t n, int64_t most,
                       parquet_room *room, parquet_values *out, ty_error *err)
{
    const parquet_chunk *chunk = &f->group[group].chunk[column];
    parquet_form raw = parquet_raw_form(f->column[column].type);
    page_walk w = {.column = &f->column[column], .chunk = chunk, .n_rows = f->group[group].n_rows, .out = out};
    w.most = most;
    w.n_levels_left = chunk->n_values;
    w.room = room;
    parquet_values_again(out, raw);
    w.dictionary.form = raw;
    int rc = page_refuse(f, group, column, err);
    if (rc == 0 && n > 0) {
        w.p = bytes;
        w.end = w.p + n;
    }
    if (rc == 0)
        rc = page_walk_all(&w, err);
    parquet_values_fini(&w.dictionary);
    if (rc == 0)
        return 0;
    parquet_values_fini(out);
    return ty_error_wrap(err, "column \"%s\"", f->column[column].name);
}

int parquet_read(const parquet_file *f, int group, int column, int64_t most, parquet_room *room, parquet_values *out,
                 ty_error *err)
{
    const parquet_chunk *chunk = &f->group[group].chunk[column];
    bool is_here = !chunk->is_elsewhere && !chunk->is_encrypted && chunk->n_bytes > 0; /* and lies in the file */
    return parquet_read_chunk(f, group, column, is_here ? f->bytes + chunk->at : NULL,
                              is_here ? (size_t)chunk->n_bytes : 0, most, room, out, err);
}
