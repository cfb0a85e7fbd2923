/* jpeg.c - JPEG through libjpeg-turbo.
 *
 * The library reports errors by a call that must not return. It jumps back to jpeg_guard(), whose frame, and those of
 * the calls it makes, own nothing: everything that must be freed lies in the jpeg_job of the caller, who frees it
 * whichever way jpeg_guard() ended.
 *
 * Warnings say that data are damaged and what is shown is made up; they are errors here, but for those of
 * jpeg_harmless, which say that something is odd and nothing is lost. The number of scans of a progressive picture is
 * limited, since each costs a pass over the whole of it and only a few bytes in the file.
 */
#include "container/input/image/decode.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum { JPEG_ROW_BYTES = 48 }; /* a pixel of a row and a channel: 16 rows of samples, coefficients, upsampled ones */
enum { JPEG_MAX_SCANS = 500, JPEG_EXIF_MARKER = JPEG_APP0 + 1 };

typedef struct jpeg_job {
    struct jpeg_error_mgr errors; /* first: the library hands out its address */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct z;
    jmp_buf back;
    ty_error *err;
    const uint8_t *p;
    size_t n;
    const ty_image_want *want;
    image_header *header; /* to fill, or NULL */
    ty_image *out;        /* to fill, or NULL */
    int rc;               /* of our own failures between the library's calls */
} jpeg_job;

/* Bytes between markers, markers of writers that do not keep to the standard's letter. */
static const int jpeg_harmless[] = {JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR, JWRN_ADOBE_XFORM, JWRN_TOO_MUCH_DATA};

static _Noreturn void jpeg_fail(j_common_ptr z)
{
    jpeg_job *job = (jpeg_job *)z->err;
    char text[JMSG_LENGTH_MAX];
    z->err->format_message(z, text);
    ty_error_set(job->err, TY_E_DATA_VALUE, "%s", text);
    longjmp(job->back, 1);
}

static void jpeg_note(j_common_ptr z, int level)
{
    if (level >= 0)
        return; /* a trace of what it reads */
    for (size_t i = 0; i < sizeof jpeg_harmless / sizeof jpeg_harmless[0]; i++)
        if (z->err->msg_code == jpeg_harmless[i])
            return;
    jpeg_fail(z);
}

static void jpeg_say_nothing(j_common_ptr z)
{
    (void)z;
}

static void jpeg_count_scans(j_common_ptr z)
{
    jpeg_job *job = (jpeg_job *)z->err;
    if (((j_decompress_ptr)z)->input_scan_number <= JPEG_MAX_SCANS)
        return;
    ty_error_set(job->err, TY_E_LIMIT, "more than %d scans, which no camera and no encoder makes", JPEG_MAX_SCANS);
    longjmp(job->back, 1);
}

static int jpeg_orientation(const struct jpeg_decompress_struct *z)
{
    for (jpeg_saved_marker_ptr m = z->marker_list; m != NULL; m = m->next)
        if (m->marker == JPEG_EXIF_MARKER && m->data_length > 6 && memcmp(m->data, "Exif\0", 6) == 0)
            return image_exif_orientation(m->data + 6, m->data_length - 6);
    return 1;
}

/* What the library keeps: some rows of blocks, and where the scans of a picture lie one behind the other the
 * coefficients of all blocks (libjpeg.txt, "Memory management"). */
static size_t jpeg_memory(struct jpeg_decompress_struct *z)
{
    size_t bytes = (size_t)z->image_width * (JPEG_ROW_BYTES * (size_t)z->num_components);
    for (int c = 0; c < z->num_components && jpeg_has_multiple_scans(z); c++)
        bytes += (size_t)z->comp_info[c].width_in_blocks * z->comp_info[c].height_in_blocks * sizeof(JBLOCK);
    return bytes;
}

static void jpeg_read_header_of(jpeg_job *job)
{
    struct jpeg_decompress_struct *z = &job->z;
    jpeg_create_decompress(z);
    z->progress = &job->progress;
    jpeg_mem_src(z, job->p, job->n);
    jpeg_save_markers(z, JPEG_EXIF_MARKER, 0xffff);
    jpeg_read_header(z, TRUE);
    *job->header = (image_header){.width = z->image_width > INT32_MAX ? INT32_MAX : (int)z->image_width,
                                  .height = z->image_height > INT32_MAX ? INT32_MAX : (int)z->image_height,
                                  .channels = z->num_components == 1 ? 1 : 3,
                                  .orientation = jpeg_orientation(z),
                                  .decoder_bytes = jpeg_memory(z)};
}

/* C, M, Y, K as Adobe stores them, which is inverted, or as they are. */
static void jpeg_rgb_from_cmyk(ty_image *image, bool inverted)
{
    size_t n = (size_t)image->width * (size_t)image->height;
    uint8_t *to = image->px;
    for (const uint8_t *from = image->px, *end = from + n * 4; from < end; from += 4, to += 3)
        for (int c = 0; c < 3; c++) {
            unsigned ink = inverted ? from[c] : 255u - from[c], black = inverted ? from[3] : 255u - from[3];
            to[c] = (uint8_t)((ink * black + 127u) / 255u);
        }
    image->channels = 3;
}

static void jpeg_read_pixels(jpeg_job *job)
{
    struct jpeg_decompress_struct *z = &job->z;
    bool four = z->num_components == 4, one = job->want->channels == 1 || job->want->channels == 2;
    z->out_color_space = four ? JCS_CMYK : one || z->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (z->out_color_space == JCS_GRAYSCALE && z->jpeg_color_space == JCS_RGB)
        z->out_color_space = JCS_RGB;
    z->scale_num = 1;
    z->scale_denom = job->want->reduce > 1 ? (unsigned)job->want->reduce : 1;
    jpeg_start_decompress(z);
    job->rc = ty_image_make(job->out, (int)z->output_width, (int)z->output_height, z->output_components, job->err);
    if (job->rc < 0)
        return;
    size_t stride = (size_t)z->output_width * (size_t)z->output_components;
    while (z->output_scanline < z->output_height) {
        JSAMPROW rows[8];
        unsigned left = z->output_height - z->output_scanline, n = left < 8 ? left : 8;
        for (unsigned i = 0; i < n; i++)
            rows[i] = job->out->px + (z->output_scanline + i) * stride;
        jpeg_read_scanlines(z, rows, n);
    }
    jpeg_finish_decompress(z);
    if (four)
        jpeg_rgb_from_cmyk(job->out, z->saw_Adobe_marker);
}

/* The frame that errors come back to. */
static int jpeg_guard(jpeg_job *job)
{
    if (setjmp(job->back) != 0)
        return -1;
    jpeg_read_header_of(job);
    if (job->out != NULL)
        jpeg_read_pixels(job);
    return job->rc;
}

static int jpeg_run(jpeg_job *job)
{
    job->z.err = jpeg_std_error(&job->errors);
    job->errors.error_exit = jpeg_fail;
    job->errors.emit_message = jpeg_note;
    job->errors.output_message = jpeg_say_nothing;
    job->progress.progress_monitor = jpeg_count_scans;
    int rc = jpeg_guard(job);
    jpeg_destroy_decompress(&job->z);
    return rc;
}

static bool jpeg_has_magic(const uint8_t *p, size_t n)
{
    return n >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0;
}

static int jpeg_probe(const uint8_t *p, size_t n, image_header *out, ty_error *err)
{
    jpeg_job job = {.p = p, .n = n, .header = out, .err = err};
    return jpeg_run(&job);
}

static int jpeg_decode(const uint8_t *p, size_t n, const image_header *header, const ty_image_want *want, ty_image *out,
                       ty_error *err)
{
    image_header again;
    jpeg_job job = {.p = p, .n = n, .header = &again, .want = want, .out = out, .err = err};
    (void)header;
    return jpeg_run(&job);
}

const image_format image_jpeg = {"JPEG", jpeg_has_magic, jpeg_probe, jpeg_decode};
