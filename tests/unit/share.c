/* Kernels that differ in sizes alone: which numbers become parameters, and that each kernel is still what it was. */
#include "compiler/target/cpu/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define START "(char *const *b, long lo, long hi)\n{\n"
#define LEAD  "void "

static const char scaled[] = START " const long i = lo / %ldl %% %ldl, k = q %% %ldl;\n"
                                   " for (long c = 0; c < %ldl; c++) { x[c + %ldl * i] = 0x1.%dp-%df * y[c]; }\n}\n";

static ty_ktexts texts_of(ty_arena *a, const char *const *text, int n)
{
    ty_ktexts t = {.arena = a};
    for (int i = 0; i < n; i++)
        ty_ktexts_add(&t, text[i], strlen(text[i]));
    ty_ktexts_sort(&t);
    return t;
}

static const char *text_scaled(ty_arena *a, long divisor, long rows, long columns, int digit, int exponent)
{
    return ty_arena_printf(a, scaled, divisor, divisor, rows, columns, columns, digit, exponent);
}

/* The k-th number that the kernel of this hash hands on. */
static void argument_of(const char *text, uint64_t hash, int k, char out[32])
{
    char name[64];
    snprintf(name, sizeof name, LEAD TY_KTEXTS_NAME "(", (unsigned long)hash);
    const char *at = strstr(text, name);
    assert_non_null(at);
    at = strstr(at, "(b, lo, hi, ");
    assert_non_null(at);
    at += strlen("(b, lo, hi, ");
    for (; k > 0; k--)
        at = strchr(at, ' ') + 1;
    size_t n = strcspn(at, ",)");
    assert_true(n < 32);
    memcpy(out, at, n);
    out[n] = 0;
}

/* The shared function with a kernel's numbers in place of its parameters: the kernel's own text again. */
static void expect_text(const char *text, const ty_ktexts_one *kernel)
{
    char got[4096], number[32];
    size_t n = 0;
    const char *at = strchr(strstr(text, "void ty_s_"), '{');
    const char *own = strchr(kernel->text, '{');
    for (size_t len = strlen(own); n < len && at[0];) {
        if (strncmp(at, "ty_n", 4) == 0) {
            char *end;
            argument_of(text, kernel->hash, (int)strtol(at + 4, &end, 10), number);
            memcpy(got + n, number, strlen(number));
            n += strlen(number);
            at = end;
        } else
            got[n++] = *at++;
    }
    got[n] = 0;
    assert_string_equal(got, own);
}

/* The one text that three become, in which each of them is still to be found. */
static const char *one_of_three(ty_arena *a, const char *const text[3])
{
    ty_ktexts from = texts_of(a, text, 3), to = ty_share_texts(&from, LEAD);
    assert_int_equal(to.n, 1);
    assert_int_equal(from.n, 3);
    for (int i = 0; i < from.n; i++)
        expect_text(to.one[0].text, &from.one[i]);
    return to.one[0].text;
}

static void test_sizes_become_parameters(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    const char *text[] = {text_scaled(&a, 49, 4, 256, 5, 7), text_scaled(&a, 49, 4, 1024, 5, 9),
                          text_scaled(&a, 49, 4, 64, 5, 7)};
    const char *one = one_of_three(&a, text);
    assert_non_null(strstr(one, "const long ty_n0, const float ty_n1)"));
    assert_null(strstr(one, "ty_n2")); /* the same number twice is one parameter */
    ty_arena_fini(&a);
}

/* They differ in a number that must stay: a divisor of an address, a small one, another word. */
static void test_what_stays_apart(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    const char *text[9];
    for (int i = 0; i < 3; i++) {
        text[i] = text_scaled(&a, 49 + i, 4, 256, 5, 7);
        text[3 + i] = text_scaled(&a, 49, 5 + i, 512, 5, 7);
        text[6 + i] = ty_arena_printf(&a, START " y[0] = %du + %d;\n}\n", 256 + i % 2, 256 + i / 2);
    }
    ty_ktexts from = texts_of(&a, text, 9), to = ty_share_texts(&from, LEAD);
    assert_int_equal(to.n, 9);
    for (int i = 0; i < 9; i++)
        assert_ptr_equal(to.one[i].text, from.one[i].text);
    ty_arena_fini(&a);
}

/* Two are enough; one is left as it is. */
static void test_one_is_left_alone(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    const char *text[] = {text_scaled(&a, 49, 4, 256, 5, 7), text_scaled(&a, 49, 4, 512, 5, 7)};
    ty_ktexts both = texts_of(&a, text, 2), one = texts_of(&a, text, 1), none = {.arena = &a};
    ty_ktexts shared = ty_share_texts(&both, LEAD), alone = ty_share_texts(&one, LEAD);
    assert_int_equal(shared.n, 1);
    expect_text(shared.one[0].text, &both.one[0]);
    expect_text(shared.one[0].text, &both.one[1]);
    assert_int_equal(alone.n, 1);
    assert_ptr_equal(alone.one[0].text, one.one[0].text);
    assert_int_equal(ty_share_texts(&none, LEAD).n, 0);
    ty_arena_fini(&a);
}

/* A unit's number is divided once for many elements, so that its divisor may be a parameter. */
static void test_rows_may_be_divided(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    const char *text[] = {text_scaled(&a, 49, 40, 256, 5, 7), text_scaled(&a, 49, 80, 256, 5, 7),
                          text_scaled(&a, 49, 160, 256, 5, 7)};
    assert_non_null(strstr(one_of_three(&a, text), "q % ty_n0"));
    ty_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_become_parameters), cmocka_unit_test(test_what_stays_apart),
        cmocka_unit_test(test_one_is_left_alone), cmocka_unit_test(test_rows_may_be_divided)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
