/* records_key.c - what decides what a walk over records finds: the key of what is kept of it (keep.h). */
#include "base/version.h"
#include "container/input/map/map.h"
#include "container/input/records_keep.h"

#include <string.h>

/* What a later version finds otherwise needs another number. */
enum { KEY_LAYOUT = 1 };

static const char *key_text(const char *s)
{
    return s ? s : "(none)";
}

static void key_add_source(const ty_dataset *ds, const ty_data_source *src, ty_buf *out)
{
    const ty_index_kept *index = src->like && src->like->index.given ? &src->like->index : &src->index;
    ty_keep_add(out, "program", "%s, layout %d", TY_VERSION_LINE, KEY_LAYOUT);
    ty_keep_add(out, "format", "%s", ds->format);
    ty_keep_add(out, "bad records", "%s, at most %lld", src->skip_bad ? "left out" : "refused",
                (long long)src->max_bad);
    ty_keep_add(out, "lines", "lenient %d, blank ones %d, index base %d, kept %d %lld %lld", src->lenient,
                src->blank_lines, (int)src->index_base, index->given, (long long)index->base, (long long)index->width);
    ty_keep_add(out, "inflated", "at most %zu", src->max_inflated_bytes);
    ty_keep_add(out, "like others", "%d", src->like != NULL);
}

static void key_add_map(const ty_map *map, ty_buf *out)
{
    const ty_map_spec *d = ty_map_declared(map);
    ty_keep_add(out, "  transform", "way %d, scale %a, offset %a, clip %d %a %a, log1p %d, normalize %d %a %a",
                (int)d->way, d->scale, d->offset, d->is_clipped, d->low, d->high, d->log1p, (int)d->normalize, d->mean,
                d->deviation);
    ty_keep_add(out, "  missing", "%d %a %s", (int)d->missing, d->missing_number, key_text(d->missing_text));
    ty_keep_add(out, "  ids",
                "boundaries %d, quantiles %d, bins %lld, words %d %lld, at most %lld, from %lld on, oov %lld",
                d->n_boundaries, d->n_quantiles, (long long)d->bins, d->word != NULL, (long long)d->n_words,
                (long long)d->max_size, (long long)d->min_count, (long long)d->n_oov);
    ty_keep_add(out, "  rows", "split %d, length %lld %d %a, one_hot %lld %d, tokenizer %s %d, measure %d", d->split,
                (long long)d->max_length, d->left, d->pad, (long long)d->one_hot, d->one_row, key_text(d->tokenizer),
                (int)d->token_part, (int)d->measure);
    ty_keep_add(out, "  tokens", "parts %x, hidden %a, start %lld", d->parts, d->hidden, (long long)d->start);
    ty_keep_add(out, "  learnt", "%d, %016llx", ty_map_is_settled(map), (unsigned long long)ty_map_fingerprint(map));
}

static void key_add_field(const ty_field *f, ty_buf *out)
{
    ty_keep_add(out, "field", "%s, columns %s, member %s, file %s", f->name, key_text(f->columns), key_text(f->member),
                key_text(f->file));
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        ty_keep_add(out, "  part", "%d of %d: %s", i, TY_N_TEXT_PARTS, key_text(f->part[i]));
    ty_keep_add(out, "  numbers", "type %d %d, rank %d, scale %a, offset %a, missing %d %a, length %lld",
                f->dtype_given, f->dtype_given ? (int)f->dtype : 0, f->shape_given ? f->rank : -1, f->scale, f->offset,
                f->missing_given, f->missing, (long long)f->max_length);
    for (int i = 0; f->shape_given && i < f->rank; i++)
        ty_keep_add(out, "  shape", "%d of %d: %lld", i, f->rank, (long long)f->dim[i]);
    if (f->map)
        key_add_map(f->map, out);
}

bool records_keep_key(const ty_dataset *ds, const ty_data_source *src, ty_buf *out)
{
    const records_impl *impl = ds->impl;
    key_add_source(ds, src, out);
    for (int i = 0; i < src->n_fields; i++)
        key_add_field(&src->fields[i], out);
    ty_keep_add(out, "files", "%d", impl->n_files);
    for (int i = 0; i < impl->n_files; i++)
        ty_keep_add_file(out, impl->file[i].file->path, &impl->file[i].bytes);
    return !out->failed;
}
