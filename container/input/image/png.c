/* png.c - PNG through libpng.
 *
 * As in jpeg.c, the library's errors jump back to a frame that owns nothing. Its limits are set as its manual advises
 * for files of strangers, and all chunks that are not needed for pixels are passed over unread: text and colour
 * profiles are where a few bytes inflate to many. Gamma and colour profiles change nothing, as in every trainer.
 */
#include "container/input/image/decode.h"

#include <setjmp.h>
#include <string.h>

#include <png.h>

enum { PNG_MAX_CHUNK_BYTES = 8 << 20, PNG_MAX_CHUNKS = 1000, PNG_HEADER_BYTES = 33 };
enum { PNG_WINDOW_BYTES = 64 << 10 }; /* of inflating */

typedef struct png_job {
    png_structp z;
    png_infop info;
    jmp_buf back;
    ty_error *err;
    const uint8_t *p;
    size_t n, at;
    const ty_image_want *want;
    ty_image *out;
    int rc;
} png_job;

static _Noreturn void png_fail(png_structp z, png_const_charp text)
{
    png_job *job = png_get_error_ptr(z);
    ty_error_set(job->err, TY_E_DATA_VALUE, "%s", text);
    longjmp(job->back, 1);
}

/* What is damaged in a way that changes pixels is an error of the library's, and no warning. */
static void png_pass_over(png_structp z, png_const_charp text)
{
    (void)z, (void)text;
}

static void png_take(png_structp z, png_bytep to, size_t n)
{
    png_job *job = png_get_io_ptr(z);
    if (n > job->n - job->at) {
        ty_error_set(job->err, TY_E_DATA_VALUE, "the file ends at byte %zu, in the middle of the picture", job->n);
        longjmp(job->back, 1);
    }
    memcpy(to, job->p + job->at, n);
    job->at += n;
}

/* Everything becomes 8 bits of grey or RGB, with alpha only if it is there and wanted. */
static void png_ask(png_job *job)
{
    int wanted = job->want->channels, type = png_get_color_type(job->z, job->info);
    bool alpha_unwanted = wanted == 1 || wanted == 3;
    bool is_palette = type == PNG_COLOR_TYPE_PALETTE;
    if (is_palette)
        png_set_palette_to_rgb(job->z);
    else if (type == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(job->z);
    if (png_get_bit_depth(job->z, job->info) == 16)
        png_set_scale_16(job->z);
    if (!alpha_unwanted && png_get_valid(job->z, job->info, PNG_INFO_tRNS))
        png_set_tRNS_to_alpha(job->z);
    if (alpha_unwanted)
        png_set_strip_alpha(job->z);
}

static void png_read_pixels(png_job *job)
{
    png_set_sig_bytes(job->z, 0);
    png_read_info(job->z, job->info);
    png_ask(job);
    int passes = png_set_interlace_handling(job->z);
    png_read_update_info(job->z, job->info);
    uint32_t width = png_get_image_width(job->z, job->info), height = png_get_image_height(job->z, job->info);
    int channels = png_get_channels(job->z, job->info);
    size_t stride = png_get_rowbytes(job->z, job->info);
    if (stride != (size_t)width * (size_t)channels)
        png_error(job->z, "rows have an unexpected length");
    job->rc = ty_image_make(job->out, (int)width, (int)height, channels, job->err);
    for (int pass = 0; job->rc == 0 && pass < passes; pass++)
        for (uint32_t y = 0; y < height; y++)
            png_read_row(job->z, job->out->px + y * stride, NULL);
    if (job->rc == 0)
        png_read_end(job->z, NULL);
}

static int png_guard(png_job *job)
{
    if (setjmp(job->back) != 0)
        return -1;
    png_read_pixels(job);
    return job->rc;
}

static int png_decode(const uint8_t *p, size_t n, const image_header *header, const ty_image_want *want, ty_image *out,
                      ty_error *err)
{
    png_job job = {.p = p, .n = n, .want = want, .out = out, .err = err};
    int64_t max = want->max_pixels > 0 ? want->max_pixels : TY_IMAGE_MAX_PIXELS;
    (void)header;
    job.z = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, png_fail, png_pass_over);
    job.info = job.z != NULL ? png_create_info_struct(job.z) : NULL;
    if (job.info == NULL) {
        png_destroy_read_struct(&job.z, NULL, NULL);
        return ty_error_set(err, TY_E_LIMIT, "no memory to read a picture");
    }
    png_set_read_fn(job.z, &job, png_take);
    png_set_user_limits(job.z, TY_IMAGE_MAX_SIDE, max < TY_IMAGE_MAX_SIDE ? (uint32_t)max : TY_IMAGE_MAX_SIDE);
    png_set_chunk_malloc_max(job.z, PNG_MAX_CHUNK_BYTES);
    png_set_chunk_cache_max(job.z, PNG_MAX_CHUNKS);
    png_set_keep_unknown_chunks(job.z, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    int rc = png_guard(&job);
    png_destroy_read_struct(&job.z, &job.info, NULL);
    return rc;
}

static bool png_has_magic(const uint8_t *p, size_t n)
{
    return n >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0;
}

/* IHDR is the first chunk, of 13 bytes: width, height, depth, colour type. tRNS, which may add alpha, stands further
 * behind and is looked for chunk by chunk. */
static int png_probe(const uint8_t *p, size_t n, image_header *out, ty_error *err)
{
    static const int channels[7] = {[0] = 1, [2] = 3, [3] = 3, [4] = 2, [6] = 4};
    if (n < PNG_HEADER_BYTES || image_u32be(p + 8) != 13 || memcmp(p + 12, "IHDR", 4) != 0 || p[25] > 6 ||
        channels[p[25]] == 0)
        return ty_error_set(err, TY_E_DATA_VALUE, "its header is malformed");
    uint32_t w = image_u32be(p + 16), h = image_u32be(p + 20);
    out->decoder_bytes = PNG_WINDOW_BYTES + 2 * 8 * (size_t)(w > INT32_MAX ? INT32_MAX : w); /* 2 rows of 16 bits */
    out->width = w > INT32_MAX ? INT32_MAX : (int)w;
    out->height = h > INT32_MAX ? INT32_MAX : (int)h;
    out->channels = channels[p[25]];
    for (size_t at = PNG_HEADER_BYTES; n - at >= 12 && memcmp(p + at + 4, "IDAT", 4) != 0;) {
        size_t length = image_u32be(p + at);
        if (memcmp(p + at + 4, "tRNS", 4) == 0 && (p[25] == 0 || p[25] == 2 || p[25] == 3))
            out->channels++;
        if (length > n - at - 12)
            break;
        at += length + 12;
    }
    return 0;
}

const image_format image_png = {"PNG", png_has_magic, png_probe, png_decode};
