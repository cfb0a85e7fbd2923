/* input_tile.c - many numbers and records at once: what every kind of processor reads is what one reader by bytes does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "container/input/number.h"
#include "container/input/table/walk.h"
#include "input_files.h"

#include <math.h>

enum { MOST = 61, WIDEST = 40 };

static uint64_t drawn;

static uint32_t draw(uint32_t n)
{
    return ty_rng_u32(21, 22, 23, drawn++) % n;
}

/* ---- numbers ---- */

/* Texts one behind the other, with a separator before each and behind the last. */
typedef struct line {
    char bytes[16 + MOST * (WIDEST + 1) + 64];
    uint32_t pair[MOST + 8];
    int n, at;
} line;

static int64_t n_read, n_odd;

static void line_begin(line *l)
{
    memset(l->bytes, '7', sizeof l->bytes); /* what no number may take in */
    l->n = 0;
    l->at = 16;
    l->bytes[l->at++] = ',';
}

static void line_add(line *l, const char *text, size_t n)
{
    memcpy(l->bytes + l->at, text, n);
    l->pair[l->n++] = (uint32_t)(l->at - 1) | (uint32_t)((size_t)l->at + n) << 16;
    l->at += (int)n;
    l->bytes[l->at++] = draw(2) ? ',' : '\n';
}

static const char *line_text(const line *l, int i, size_t *n)
{
    const char *p = l->bytes + (l->pair[i] & 0xffff) + 1;
    *n = (size_t)(l->bytes + (l->pair[i] >> 16) - p);
    return p;
}

static void tell(const line *l, int i, const walk_ways *ways, const char *what, double got)
{
    size_t n;
    const char *p = line_text(l, i, &n);
    fail_msg("%s reads \"%.*s\" as %s %.17g", ways->name, (int)n, p, what, got);
}

/* Digits with a point within or none, and a sign, 16 characters in all: nobody may call that odd. */
static bool is_plain(const char *p, size_t n)
{
    size_t digits = 0, points = 0, at = n > 0 && *p == '-';
    bool right = n > at && n <= 16 && p[n - 1] != '.';
    for (size_t i = at; i < n; i++) {
        digits += p[i] >= '0' && p[i] <= '9';
        points += p[i] == '.';
    }
    return right && digits + points + at == n && points < 2 && digits < 16;
}

static bool is_odd(const walk_numbers *t, int i)
{
    return t->odd[i / 8] >> (i % 8) & 1;
}

static void check_real(const line *l, const walk_ways *ways, bool powers)
{
    uint8_t odd[MOST / 8 + 1];
    double real[MOST + 1];
    float single[MOST + 1];
    walk_numbers t = {.lane = l->bytes, .begin = l->bytes, .pair = l->pair, .n = l->n, .odd = odd, .powers = powers};
    real[l->n] = single[l->n] = 77;
    int n = ways->real(&t, real), n_bits = 0;
    for (int i = 0; i < l->n; i++) {
        double want;
        size_t bytes;
        const char *p = line_text(l, i, &bytes);
        bool whole = ty_number_scan(p, p + bytes, &want) == p + bytes;
        n_bits += is_odd(&t, i);
        if (is_odd(&t, i) ? is_plain(p, bytes) : !whole || memcmp(&real[i], &want, sizeof want) != 0)
            tell(l, i, ways, is_odd(&t, i) ? "odd" : "the double", real[i]);
    }
    assert_int_equal(n, n_bits);
    n_read += l->n - n;
    n_odd += n;
    t.powers = powers;
    ways->single(&t, single);
    for (int i = 0; i < l->n; i++)
        if (!is_odd(&t, i) && single[i] != (float)real[i])
            tell(l, i, ways, "the float", (double)single[i]);
    assert_true(real[l->n] == 77 && single[l->n] == 77); /* nothing is written behind the last */
}

static void check_whole(const line *l, const walk_ways *ways)
{
    uint8_t odd[MOST / 8 + 1];
    int64_t whole[MOST + 1], min = INT64_MAX, max = INT64_MIN;
    walk_numbers t = {.lane = l->bytes, .begin = l->bytes, .pair = l->pair, .n = l->n, .odd = odd};
    whole[l->n] = 77;
    ways->whole(&t, whole);
    for (int i = 0; i < l->n; i++) {
        int64_t want = 0;
        size_t bytes;
        const char *p = line_text(l, i, &bytes);
        bool all = ty_integer_scan(p, p + bytes, &want) == p + bytes,
             plain = is_plain(p, bytes) && !memchr(p, '.', bytes);
        if (is_odd(&t, i) ? plain : !all || whole[i] != want)
            tell(l, i, ways, is_odd(&t, i) ? "odd" : "the whole number", (double)whole[i]);
        min = !is_odd(&t, i) && want < min ? want : min;
        max = !is_odd(&t, i) && want > max ? want : max;
    }
    assert_int_equal(t.min, min);
    assert_int_equal(t.max, max);
    assert_int_equal(whole[l->n], 77);
}

static void check_line(line *l)
{
    const walk_ways *ways;
    for (int i = 0; i < 8; i++)
        l->pair[l->n + i] = l->pair[0];
    for (int i = 0; l->n > 0 && (ways = walk_ways_number(i)) && ways->real; i++) {
        check_real(l, ways, false);
        check_real(l, ways, true);
        check_whole(l, ways);
    }
}

/* A text of its own behind the others; a line that is full is looked at. */
static void try(line *l, const char *text, size_t n)
{
    line_add(l, text, n);
    if (l->n == MOST || draw(60) == 0) {
        check_line(l);
        line_begin(l);
    }
}

/* All texts of up to six characters of those that numbers have, and some that they do not. */
static void short_texts_of_every_kind(void **state)
{
    (void)state;
    static const char letters[] = "09-.e+ ";
    line l;
    line_begin(&l);
    for (int n = 0; n <= 6; n++) {
        int count = 1;
        for (int i = 0; i < n; i++)
            count *= 7;
        for (int k = 0; k < count; k++) {
            char text[8];
            for (int i = 0, left = k; i < n; i++, left /= 7)
                text[i] = letters[left % 7];
            try(&l, text, (size_t)n);
        }
    }
    check_line(&l);
}

static void any_byte_beside_digits(void **state)
{
    (void)state;
    static const char *const rows[] = {"1234567890123456", "-12.25", "7", "1.234567e-01", "-.5", "0.30000000000004"};
    line l;
    line_begin(&l);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (size_t at = 0; at < strlen(rows[r]); at++)
            for (int byte = 0; byte < 256; byte++) {
                char text[WIDEST];
                size_t n = strlen(rows[r]);
                memcpy(text, rows[r], n);
                text[at] = (char)byte;
                try(&l, text, n);
            }
    check_line(&l);
}

/* Every length and place of the point. */
static void every_length_and_point(void **state)
{
    (void)state;
    line l;
    line_begin(&l);
    for (int round = 0; round < 40; round++)
        for (int digits = 1; digits <= 18; digits++)
            for (int point = 0; point <= digits + 1; point++)
                for (int power = -25; power <= 25; power += 1 + (int)draw(5)) {
                    char text[WIDEST + 8];
                    int n = 0;
                    if (draw(2))
                        text[n++] = '-';
                    for (int i = 0; i < digits; i++) {
                        if (i == point)
                            text[n++] = '.';
                        text[n++] = (char)('0' + draw(10));
                    }
                    if (point == digits)
                        text[n++] = '.';
                    if (draw(2))
                        n += snprintf(text + n, 8, draw(2) ? "e%d" : "E%+03d", power);
                    try(&l, text, (size_t)n);
                }
    check_line(&l);
}

/* As files have them, and near the middle between two numbers: of doubles, and of floats, which are rounded twice. */
static void numbers_between_two(void **state)
{
    (void)state;
    line l;
    line_begin(&l);
    n_read = n_odd = 0;
    for (int i = 0; i < 400000; i++) {
        char text[64];
        uint64_t bits = (uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX);
        double v = (double)(int64_t)bits / (double)(UINT64_C(1) << (24 + draw(40)));
        float f = (float)v, next = nextafterf(f, INFINITY);
        if (i % 3 == 0) {
            v = ((double)f + (double)next) / 2;
            v = i % 2 ? nextafter(v, draw(2) ? INFINITY : -INFINITY) : v;
        } else if (i % 3 == 1)
            v = (double)((bits >> 11) | 1) / ldexp(1, 53 + (int)draw(4)); /* digits end in ...5 */
        static const char *const forms[] = {"%.9g", "%.15g", "%.14g", "%.13f", "%.6e", "%.2f", "%.16g", "%.8e"};
        int n = snprintf(text, sizeof text, forms[draw(8)], v);
        try(&l, text, (size_t)(n < WIDEST ? n : WIDEST));
    }
    check_line(&l);
    assert_true(n_read > n_odd); /* else nothing was tried */
}

/* ---- separators ---- */

static void separators_are_found_alike(void **state)
{
    (void)state;
    static const char letters[] = "abcd,,,\n\n\"\"1";
    size_t room = 40000;
    char *text = malloc(room);
    table_walk *w[2] = {malloc(sizeof **w), malloc(sizeof **w)};
    for (int round = 0; round < 300; round++) {
        uint32_t kinds = round % 3 == 0 ? 9 : sizeof letters - 1, n = 1 + draw((uint32_t)room);
        for (uint32_t i = 0; i < n; i++)
            text[i] = round % 4 == 1 ? ',' : letters[draw(kinds)];
        const walk_ways *any = walk_ways_number(0);
        for (int i = 0; any; any = walk_ways_number(++i)) {
            table_walk *to = w[i > 0];
            to->csv = (ty_csv){.at = text, .end = text + n, .delimiter = ','};
            any->look(to, text);
            assert_int_equal(to->place[0], UINT16_MAX);
            if (i == 0)
                continue;
            assert_int_equal(to->n, w[0]->n);
            assert_int_equal(to->n_ends, w[0]->n_ends);
            assert_int_equal(to->n_breaks, w[0]->n_breaks);
            assert_memory_equal(to->place, w[0]->place, (size_t)to->n * 2 + 2);
            assert_memory_equal(to->end_at, w[0]->end_at, (size_t)to->n_ends * 2);
            assert_memory_equal(to->break_at, w[0]->break_at, (size_t)to->n_breaks * 2);
        }
    }
    free(w[0]);
    free(w[1]);
    free(text);
}

/* ---- tables ---- */

enum { ROWS = 3000 };

static uint32_t few = 1000; /* whole numbers in the first column */

/* Columns: a whole number, a number, one that may be empty, one with an exponent, a text in quotes or not. */
static char *a_table(size_t *n, const int *bad_row, const char *const *bad_cell, const int *bad_column, int n_bad,
                     bool cr)
{
    char *text = malloc(ROWS * 160);
    size_t at = 0;
    for (int r = 0; r < ROWS; r++) {
        char cell[5][64];
        snprintf(cell[0], 64, "%u", draw(few));
        snprintf(cell[1], 64, draw(20) ? "%.4f" : "%.17g", ((double)draw(2000000) - 1e6) / 997);
        snprintf(cell[2], 64, draw(4) ? "%.3g" : "", (double)draw(2000000) / 1e4);
        snprintf(cell[3], 64, "%.6e", (double)draw(2000000) / 3e5);
        snprintf(cell[4], 64, "%s", draw(9) ? "plain" : draw(2) ? "\"a\nb\n\"" : "\"c,\"\"d\"");
        for (int i = 0; i < n_bad; i++)
            if (bad_row[i] == r)
                snprintf(cell[bad_column[i]], 64, "%s", bad_cell[i]);
        at += (size_t)sprintf(text + at, "%s,%s,%s,%s,%s%s", cell[0], cell[1], cell[2], cell[3], cell[4],
                              cr && draw(3) ? "\r\n" : "\n");
    }
    *n = at;
    return text;
}

typedef struct column {
    const char *name, *columns;
    ty_dtype dtype;
    double scale, offset;
    bool missing_given;
} column;

static const column columns[] = {
    {"i64", "0", TY_I64, 1, 0, true},     {"i32", "0,0", TY_I32, 1, 0, false},     {"f32", "1-3", TY_F32, 1, 0, false},
    {"f64", "3,1,2", TY_F64, 1, 0, true}, {"scaled", "1", TY_F32, 0.25, 3, false}, {"half", "2-3", TY_F16, 1, 0, false},
    {"ids", "0", TY_I16, 1, 0, false},    {"one", "2", TY_F64, 2, 1, true},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static ty_csv_missing missing; /* the usual ones */

static int open_table(ty_field *f, int threads, ty_dataset **ds, ty_error *err)
{
    for (int i = 0; i < COLUMNS; i++) {
        f[i] = ty_field_make(columns[i].name);
        f[i].columns = columns[i].columns;
        f[i].dtype = columns[i].dtype;
        f[i].dtype_given = true;
        f[i].scale = columns[i].scale;
        f[i].offset = columns[i].offset;
        f[i].missing_given = columns[i].missing_given;
        f[i].missing = -1;
    }
    *err = (ty_error){0};
    ty_data_source src = {.csv_header = TY_CSV_HEADER_NO, .csv_delimiter = ',', .n_threads = threads};
    src.csv_missing = missing;
    return files_open("t.csv", f, COLUMNS, src, ds, err);
}

static void same_rows(const ty_dataset *a, const ty_dataset *b)
{
    assert_int_equal(a->n_samples, b->n_samples);
    for (int i = 0; i < COLUMNS; i++) {
        const ty_field_info *x = &a->field[i], *y = &b->field[i];
        assert_int_equal(x->n_missing, y->n_missing);
        assert_int_equal(x->first_missing, y->first_missing);
        assert_int_equal(x->min, y->min);
        assert_int_equal(x->max, y->max);
        assert_int_equal(x->min_sample, y->min_sample);
        assert_int_equal(x->max_sample, y->max_sample);
        for (int64_t k = 0; k < a->n_samples; k++) {
            char row[64] = {0}, other[64] = {0}, place[600], other_place[600];
            assert_int_equal(ty_dataset_read(a, i, &k, 1, row, NULL), 0);
            assert_int_equal(ty_dataset_read(b, i, &k, 1, other, NULL), 0);
            assert_memory_equal(row, other, sizeof row);
            ty_dataset_place(a, i, k, place, sizeof place);
            ty_dataset_place(b, i, k, other_place, sizeof other_place);
            assert_string_equal(place, other_place);
        }
    }
}

/* The last of the ways, a record at a time, is what all others are compared with. */
static void compare_all(void)
{
    ty_field f[COLUMNS];
    ty_dataset *want, *got;
    ty_error err;
    char message[8192];
    int n_ways = 0;
    while (walk_ways_number(n_ways))
        n_ways++;
    walk_ways_taken = n_ways - 1;
    bool good = open_table(f, 1, &want, &err) == 0;
    snprintf(message, sizeof message, "%s", good ? "" : files_error(&err));
    for (walk_ways_taken = 0; walk_ways_taken < n_ways - 1; walk_ways_taken++)
        for (int threads = 1; threads <= 2; threads++) {
            int rc = open_table(f, threads, &got, &err);
            if ((rc == 0) != good)
                fail_msg("%s\ninstead of: %s", rc == 0 ? "no fault" : files_error(&err), message);
            if (rc == 0) {
                same_rows(got, want);
                ty_dataset_close(got);
            } else
                assert_string_equal(files_error(&err), message);
        }
    walk_ways_taken = 0;
    if (good)
        ty_dataset_close(want);
}

static void tables_are_the_same_by_every_way(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        size_t n;
        char *text = a_table(&n, NULL, NULL, NULL, 0, round % 2);
        files_put("t.csv", text, n - (round == 3));
        compare_all();
        free(text);
    }
}

/* Cells that are no fault but no plain numbers either, and those that are: which comes first, and where. */
static void odd_cells_and_faults(void **state)
{
    (void)state;
    static const char *const odd[] = {"+5", "\"7\"", " 8 ", "1e2", "5.", "+0", "\"2\"", " 1"};
    static const char *const misfit[] = {"40000", "-40000", "3e4", "+32768", "0", "1", "\"2\""};
    static const char *const any[] = {
        "",    "NA",  "\r5",  "1e9", "abc", "1,2", "--1", "1\"2\"", "\"\"x", "0x10",
        "5\r", "nan", "-inf", "9.5", "-1",  "+5",  " 8 ", "99999",  "1.2.3", "99999999999999999999"};
    static const struct {
        const char *const *cell;
        uint32_t n, columns;
    } kinds[] = {{odd, 8, 4}, {misfit, 7, 1}, {any, 20, 4}, {odd, 8, 1}};
    for (int round = 0; round < 80; round++) {
        int row[6], column[6], n_bad = 1 + (int)draw(6), kind = round % 4;
        const char *cell[6];
        for (int i = 0; i < n_bad; i++) {
            row[i] = i > 0 && draw(3) == 0 ? row[i - 1] : (int)draw(ROWS);
            column[i] = (int)draw(kinds[kind].columns);
            cell[i] = kinds[kind].cell[draw(kinds[kind].n)];
        }
        few = kind == 3 ? 3 : 1000;
        static const char *const declared[] = {"abc", "", "2"};
        missing = (ty_csv_missing){round % 16 >= 8 ? declared : NULL, 1 + (int)draw(3)};
        size_t n;
        char *text = a_table(&n, row, cell, column, n_bad, round % 3 == 0);
        files_put("t.csv", text, n);
        compare_all();
        free(text);
    }
    few = 1000;
    missing.text = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_texts_of_every_kind),  cmocka_unit_test(any_byte_beside_digits),
        cmocka_unit_test(every_length_and_point),     cmocka_unit_test(numbers_between_two),
        cmocka_unit_test(separators_are_found_alike), cmocka_unit_test(tables_are_the_same_by_every_way),
        cmocka_unit_test(odd_cells_and_faults),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
