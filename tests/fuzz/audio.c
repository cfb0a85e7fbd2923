/* Sounds: what decodes has the number of frames that its header said, and becomes a row. The bytes choose how. */
#include "container/input/audio/plan.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_FRAMES = 1 << 14, LENGTH = 200 };

static void check_error(const ty_error *err)
{
    if (err->code == TY_E_NONE || err->code == TY_E_INTERNAL || !err->message[0])
        abort();
}

static void read(const uint8_t *p, size_t n, uint8_t how)
{
    static const int rates[] = {0, 16000, 8000, 11025};
    static float out[3 * MAX_FRAMES];
    ty_audio_plan plan = ty_audio_plan_make();
    ty_audio_info info;
    ty_error err = {0};
    size_t work = 0;
    if (ty_audio_probe(p, n, &info, &err) < 0) {
        check_error(&err);
        return;
    }
    plan.length = how & 1 ? LENGTH : 0;
    plan.rate = rates[how / 2 % 4];
    plan.channels = how / 8 % 4;
    plan.crop = plan.length ? (ty_audio_crop)(how / 32 % 3) : TY_AUDIO_CROP_START;
    plan.normalize = (ty_audio_normalize)(how / 96 % 3);
    if (ty_audio_plan_check(&plan, TY_F32, &err) < 0)
        abort();
    if (ty_audio_plan_settle(&plan, &info, &err) < 0) {
        check_error(&err);
        return;
    }
    if (plan.length > MAX_FRAMES || plan.channels > 3)
        return;
    ty_audio_reader reader = {.plan = &plan};
    ty_chance chance = {.seed = how, .sample = (int64_t)n, .augment = true};
    if (ty_audio_look(&plan, p, n, &work, &err) < 0)
        check_error(&err);
    else if (work < (size_t)1 << 26 && ty_audio_row(&reader, p, n, &chance, TY_F32, out, &err) < 0)
        check_error(&err);
    ty_audio_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        read(data, size, data[size - 1]);
    return 0;
}
