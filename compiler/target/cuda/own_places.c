/* own_places.c - see own_places.h.
 *
 * Numbers are sorted by digits of four bits from the lowest (Knuth, The Art of Computer Programming 3, 5.2.5). A block
 * has 2,048 of them, a thread eight that follow each other. Each thread counts its digits; counts of tiles are added up
 * digit after digit, those of threads inside a tile, so that every thread knows where its first number of each digit
 * goes and equal numbers keep their order. There are no atomics.
 */
#include "compiler/target/cuda/own_places.h"

#include "compiler/kernel/ctype.h"

#include <inttypes.h>

enum { PLACES_DIGIT_BITS = 4, PLACES_DIGITS = 1 << PLACES_DIGIT_BITS, PLACES_TEXT_BYTES = 1 << 16 };

/* Where elements are between two passes. */
typedef enum places_at { PLACES_INDEX, PLACES_SORTED, PLACES_OTHER } places_at;

ty_cuda_places ty_cuda_places_of(const ty_cuda_own *o, int index, int64_t n, int64_t table)
{
    return (ty_cuda_places){.o = o,
                            .index = index,
                            .type = ty_ctypes[ty_cuda_own_type(o, index)->dtype].memory,
                            .other = TY_CUDA_OWN_SCRATCH,
                            .n = n,
                            .table = table,
                            .tiles = (n + TY_PLACES_TILE - 1) / TY_PLACES_TILE};
}

/* In longs: the sorted elements and all counts. */
static int64_t places_longs(const ty_cuda_places *x)
{
    return x->n + (PLACES_DIGITS * x->tiles + 2) / 2;
}

int64_t ty_cuda_places_bytes(const ty_cuda_places *x)
{
    return 8 * (places_longs(x) + (x->other == TY_CUDA_OWN_SCRATCH ? x->n : 0));
}

/* ---- parts of the text ---- */

/* Threads take their eight elements into item[] and count their digits; then sixteen threads for each digit add up what
 * sixteen threads each have of it. COUNT(d, t), of digit d and thread t: an int more behind each sixteen, so that what
 * these threads read at a time lies in different banks. */
static const char places_count[] = "  long item[8];\n"
                                   "  TY_UNROLL for (int j = 0; j < 8; j++) {\n"
                                   "   const long i = tile * 2048 + TY_THREAD * 8 + j;\n"
                                   "   item[j] = i < N ? ITEM(i) : -1;\n"
                                   "  }\n"
                                   "  for (int d = 0; d < 16; d++) COUNT(d, TY_THREAD) = 0;\n"
                                   "  TY_UNROLL for (int j = 0; j < 8; j++)\n"
                                   "   if (item[j] >= 0) COUNT(DIGIT(item[j]), TY_THREAD)++;\n"
                                   "  TY_BARRIER();\n"
                                   "  const int digit = TY_THREAD / 16, part = TY_THREAD % 16;\n"
                                   "  int sum = 0;\n"
                                   "  for (int w = 0; w < 16; w++) sum += COUNT(digit, part * 16 + w);\n";

const char ty_cuda_places_running[] = "  TY_BARRIER();\n"
                                      "  for (int step = 1; step < 256; step *= 2) {\n"
                                      "   const int before = TY_THREAD >= step ? s[TY_THREAD - step] : 0;\n"
                                      "   TY_BARRIER();\n"
                                      "   s[TY_THREAD] += before;\n"
                                      "   TY_BARRIER();\n"
                                      "  }\n";

static int places_which(const ty_cuda_places *x, places_at at)
{
    return at == PLACES_INDEX ? x->index : at == PLACES_SORTED ? TY_CUDA_OWN_SCRATCH : x->other;
}

/* Moves a pointer to the scratch memory on to the other elements, where they are there too. */
static void places_shift(const ty_cuda_places *x, places_at at, const char *name, ty_buf *text)
{
    if (at == PLACES_OTHER && x->other == TY_CUDA_OWN_SCRATCH)
        ty_buf_addf(text, " %s += %" PRId64 "l;\n", name, places_longs(x));
}

static void places_open(const ty_cuda_places *x, const char *parameters, places_at from, int shift, ty_buf *text)
{
    bool from_index = from == PLACES_INDEX;
    ty_buf_init(text, PLACES_TEXT_BYTES);
    ty_buf_addf(text, "(const %s *from, %s)\n{\n", from_index ? x->type : "long", parameters);
    ty_buf_addf(text, " const long N = %" PRId64 "l, TABLE = %" PRId64 "l, TILES = %" PRId64 "l;\n", x->n, x->table,
                x->tiles);
    ty_buf_adds(text, " (void)TABLE;\n#undef ITEM\n#undef DIGIT\n#undef COUNT\n"
                      "#define COUNT(d, t) s[(d) * 272 + (t) + (t) / 16]\n");
    ty_buf_adds(text, from_index ? "#define ITEM(i) ((from[i] >= 0 && from[i] < TABLE ? (long)from[i] : TABLE) << 32 | "
                                   "(long)(i))\n"
                                 : "#define ITEM(i) from[i]\n");
    ty_buf_addf(text, "#define DIGIT(item) ((int)((item) >> %d) & 15)\n", 32 + shift);
    ty_buf_adds(text, " int *counts = (int *)(scratch + N);\n");
    places_shift(x, from, "from", text);
}

static void places_launch(const ty_cuda_places *x, ty_buf *text, int64_t blocks, const int *which, int n)
{
    const ty_cuda_launch launch = {
        .form = "own", .threads = TY_PLACES_THREADS, .blocks = blocks > 0 ? blocks : 1, .has_barriers = true};
    x->o->launch(x->o->ctx, text, launch, which, n);
    ty_buf_fini(text);
}

/* ---- kernels ---- */

/* counts[digit][tile]. */
static void places_add_count(const ty_cuda_places *x, places_at from, int shift)
{
    const int which[] = {places_which(x, from), TY_CUDA_OWN_SCRATCH};
    ty_buf text;
    places_open(x, "long *scratch", from, shift, &text);
    ty_buf_adds(&text, " TY_SHARED int s[16 * 272];\n"
                       " for (long tile = TY_BLOCK; tile < TILES; tile += TY_BLOCKS) {\n");
    ty_buf_adds(&text, places_count);
    ty_buf_adds(&text, "  for (int m = 8; m > 0; m /= 2) sum += (int)TY_SHUFFLE_L(sum, m);\n"
                       "  if (part == 0) counts[digit * TILES + tile] = sum;\n"
                       "  TY_BARRIER();\n }\n}\n");
    places_launch(x, &text, x->tiles, which, 2);
}

/* One block, 4,096 ints at a time. */
void ty_cuda_places_scan(const ty_cuda_places *x, int64_t n)
{
    const int which[] = {TY_CUDA_OWN_SCRATCH};
    ty_buf text;
    ty_buf_init(&text, PLACES_TEXT_BYTES);
    ty_buf_addf(&text,
                "(long *scratch)\n{\n"
                " int *counts = (int *)(scratch + %" PRId64 "l);\n"
                " TY_SHARED int s[256];\n"
                " const long n = %" PRId64 "l;\n"
                " int so_far = 0;\n"
                " for (long lo = TY_THREAD * 16; lo - TY_THREAD * 16 < n; lo += 4096) {\n"
                "  int mine = 0, v[16];\n"
                "  TY_UNROLL for (int w = 0; w < 16; w++) v[w] = lo + w < n ? counts[lo + w] : 0;\n"
                "  TY_UNROLL for (int w = 0; w < 16; w++) mine += v[w];\n"
                "  s[TY_THREAD] = mine;\n",
                x->n, n);
    ty_buf_adds(&text, ty_cuda_places_running);
    ty_buf_adds(&text, "  int sum = so_far + s[TY_THREAD] - mine;\n"
                       "  so_far += s[255];\n"
                       "  TY_BARRIER();\n"
                       "  TY_UNROLL for (int w = 0; w < 16; w++) {\n"
                       "   if (lo + w < n) counts[lo + w] = sum;\n"
                       "   sum += v[w];\n"
                       "  }\n"
                       " }\n"
                       " if (TY_THREAD == 255) counts[n] = so_far;\n}\n");
    places_launch(x, &text, 1, which, 1);
}

/* Elements go where those of lower digits, earlier tiles and earlier threads end. */
static void places_add_place(const ty_cuda_places *x, places_at from, int shift, places_at to)
{
    const int which[] = {places_which(x, from), TY_CUDA_OWN_SCRATCH, places_which(x, to)};
    ty_buf text;
    places_open(x, "long *scratch, long *to", from, shift, &text);
    places_shift(x, to, "to", &text);
    ty_buf_adds(&text, " TY_SHARED int s[16 * 272], sums[256];\n"
                       " for (long tile = TY_BLOCK; tile < TILES; tile += TY_BLOCKS) {\n");
    ty_buf_adds(&text, places_count);
    ty_buf_adds(&text, "  sums[TY_THREAD] = sum;\n"
                       "  TY_BARRIER();\n"
                       "  int at = counts[digit * TILES + tile];\n"
                       "  for (int w = 0; w < part; w++) at += sums[digit * 16 + w];\n"
                       "  for (int w = 0; w < 16; w++) {\n"
                       "   const int here = COUNT(digit, part * 16 + w);\n"
                       "   COUNT(digit, part * 16 + w) = at;\n"
                       "   at += here;\n"
                       "  }\n"
                       "  TY_BARRIER();\n"
                       "  TY_UNROLL for (int j = 0; j < 8; j++)\n"
                       "   if (item[j] >= 0) to[COUNT(DIGIT(item[j]), TY_THREAD)++] = item[j];\n"
                       "  TY_BARRIER();\n }\n}\n");
    places_launch(x, &text, x->tiles, which, 3);
}

void ty_cuda_places_sort(const ty_cuda_places *x)
{
    int passes = 1;
    places_at from = PLACES_INDEX;
    while (x->table >> (passes * PLACES_DIGIT_BITS))
        passes++;
    for (int pass = 0; pass < passes; pass++) {
        places_at to = (passes - pass) % 2 ? PLACES_SORTED : PLACES_OTHER;
        places_add_count(x, from, pass * PLACES_DIGIT_BITS);
        ty_cuda_places_scan(x, PLACES_DIGITS * x->tiles);
        places_add_place(x, from, pass * PLACES_DIGIT_BITS, to);
        from = to;
    }
}
