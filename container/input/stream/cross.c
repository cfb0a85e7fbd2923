/* cross.c - fields of a stream that are made of others of the same sample (map.h, TY_MAP_CROSS). */
#include "container/input/stream/opened.h"
#include "container/input/transform.h"

int stream_settle_crosses(stream_opened *s, ty_error *err)
{
    int n = s->records.n_fields;
    s->crossed = TY_NEW_ARRAY(&s->arena, int *, s->stream.n_fields - n);
    for (int i = n; i < s->stream.n_fields; i++) {
        const ty_field *cross = &s->cross[i - n];
        int *from = TY_NEW_ARRAY(&s->arena, int, ty_map_declared(cross->map)->n_cross);
        s->crossed[i - n] = from;
        if (ty_transform_settle_cross(cross, s->field, n, from, &s->field[i], err) < 0)
            return -1;
    }
    return 0;
}

int stream_put_crosses(const stream_opened *s, int64_t row, void *const *out, ty_error *err)
{
    const ty_field_info *from[64];
    const char *rows[64];
    int n = s->records.n_fields;
    for (int i = n; i < s->stream.n_fields; i++) {
        const ty_map *map = s->cross[i - n].map;
        for (int c = 0; c < ty_map_declared(map)->n_cross; c++) {
            int k = s->crossed[i - n][c];
            from[c] = &s->field[k];
            rows[c] = (const char *)out[k] + (size_t)row * s->field[k].row_bytes;
        }
        if (ty_transform_cross(map, from, rows, 1, &s->field[i], (char *)out[i] + (size_t)row * s->field[i].row_bytes,
                               err) < 0)
            return -1;
    }
    return 0;
}
