/* Pictures: what decodes has the size that its header said, and can be resized and read. The bytes choose the rest. */
#include "container/input/image/plan.h"

#include <stdlib.h>

enum { MAX_PIXELS = 1 << 16 };

static void check_error(const ty_error *err)
{
    if (err->code == TY_E_NONE || err->code == TY_E_INTERNAL || !err->message[0])
        abort();
}

static void decode(const uint8_t *p, size_t n, int channels, int reduce)
{
    ty_image image = {0};
    ty_image_info info;
    ty_error err = {0};
    ty_image_want want = {channels, MAX_PIXELS, reduce};
    if (ty_image_decode(p, n, &want, &image, &err) < 0) {
        check_error(&err);
    } else if (ty_image_probe(p, n, &info, &err) < 0 || info.width != image.full_width ||
               info.height != image.full_height || (channels > 0 && image.channels != channels)) {
        abort();
    }
    ty_image_fini(&image);
}

static void read(const uint8_t *p, size_t n, uint8_t how)
{
    ty_image_plan plan = ty_image_plan_make();
    ty_error err = {0};
    float row[3 * 8 * 5];
    plan.height = 8, plan.width = 5, plan.channels = 3, plan.max_pixels = MAX_PIXELS;
    plan.fit = (ty_image_fit)(how % 5);
    plan.shorter = 6;
    plan.filter = (ty_image_filter)(how / 5 % 5);
    plan.crop = (ty_image_crop)(how / 25 % 3);
    plan.pad = how & 1;
    if (ty_image_plan_settle(&plan, &(ty_image_info){"", 5, 8, 3, 0}, &err) < 0)
        abort();
    ty_image_reader reader = {.plan = &plan};
    ty_chance draw = {.seed = how, .sample = (int64_t)n, .augment = true};
    if (ty_image_read(&reader, p, n, &draw, TY_F32, row, &err) < 0)
        check_error(&err);
    ty_image_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t how = data[size - 1];
    decode(data, size, how % 5, 1 << (how / 5 % 4));
    read(data, size, how);
    return 0;
}
