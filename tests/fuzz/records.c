/* Frames, and what records of them may hold. The first byte chooses the framing. */
#include "container/input/example.h"
#include "container/input/frame.h"
#include "container/input/record.h"
#include "container/input/records.h"

#include <stdlib.h>

enum { ROOM = 64, MAX_ELEMS = 1 << 16 };

static void read_example(const ty_frame *r)
{
    static const char *const names[] = {"label", "ids", "values"};
    ty_example x = {.name = names, .n = 3};
    ty_feature f[3];
    float floats[ROOM];
    int64_t ints[ROOM];
    ty_feature_piece pieces[ROOM];
    ty_error err = {0};
    if (ty_example_find(&x, r->data, r->n, f, &err) < 0) {
        if (!err.message[0])
            abort();
        return;
    }
    for (int i = 0; i < 3; i++) {
        ty_feature_floats(&f[i], floats, ROOM);
        ty_feature_ints(&f[i], ints, ROOM);
        ty_feature_bytes(&f[i], pieces, ROOM);
    }
}

static void read_tensor(const ty_frame *r)
{
    ty_record_tensor t;
    ty_error err = {0};
    if (ty_record_find(r->data, r->n, "features", &t, &err) < 0 || !t.is_there || ty_record_elems(&t) > MAX_ELEMS)
        return;
    void *out = malloc((size_t)ty_record_elems(&t) * ty_dtype_bytes(t.dtype) + 1);
    void *scratch = malloc((size_t)t.n * 16 + 1);
    if (out && scratch)
        ty_record_decode(&t, out, scratch);
    free(out);
    free(scratch);
}

static void read_mxnet(const ty_frame *r)
{
    static const char *names[] = {"label", "image"};
    ty_image_plan plan = ty_image_plan_make();
    records_field field[2] = {{.name = names[0]}, {.name = names[1], .media.image = &plan}};
    records_impl impl = {.kind = &records_mxnet, .field = field, .names = names, .n_fields = 2};
    records_look look;
    const uint8_t *bytes;
    ty_image_info info;
    size_t n;
    if (records_look_init(&look, &impl, -1, NULL) == 0 && records_mxnet.find(&look, r, NULL) == 0 &&
        records_room(&look, &look.cell[0], ROOM, NULL) == 0) {
        records_mxnet.decode(&look, &look.cell[0], ROOM);
        records_mxnet.encoded(&look.cell[1], &bytes, &n, NULL);
        ty_image_probe(bytes, n, &info, NULL);
    }
    records_look_fini(&look);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    ty_frames f = {.bytes = data + 1, .n = size - 1, .how = (ty_framing)(data[0] % 4), .unchecked = data[0] & 4};
    ty_frame r;
    ty_error err = {0};
    for (int rc; (rc = ty_frames_next(&f, &r, &err)) != 0 && (rc == 1 || err.code == TY_E_DATA_VALUE);) {
        read_example(&r);
        read_tensor(&r);
        read_mxnet(&r);
    }
    ty_frames_fini(&f);
    read_example(&(ty_frame){.data = data + 1, .n = size - 1}); /* no checksum in front of it */
    read_tensor(&(ty_frame){.data = data + 1, .n = size - 1});
    read_mxnet(&(ty_frame){.data = data + 1, .n = size - 1});
    return 0;
}
