/* pages.h - memory in large pieces that is zero without being written: arenas of weights, the slab of a step.
 *
 * From 256 KiB on a piece is mapped by itself. Its pages are zero and become resident when they are touched for the
 * first time, by whichever thread needs them, so that nobody fills gigabytes with zeros before the first step. Below
 * that it comes from the heap, where sanitizers watch its ends.
 *
 * Huge pages are not asked for. On a virtual machine whose host takes free memory back, each one is 512 faults of the
 * host at once: touching 1 GB for the first time took 2 to 4 s of system time that way and 0.5 s in pages of 4 KiB.
 */
#ifndef TY_BASE_PAGES_H
#define TY_BASE_PAGES_H

#include <stddef.h>

/* Zeros, at a multiple of 64 (from 64 KiB on of 4096). NULL: no memory. */
void *ty_pages_new(size_t n_bytes);
/* n_bytes as it was asked for; NULL is fine. */
void ty_pages_free(void *pages, size_t n_bytes);
/* Before n_bytes at `to` are filled from `from`, perhaps a mapped file: makes the pages of both present with one call
 * each where the system can (Linux 5.14), not with a fault a page. Only ever a saving of time. */
void ty_pages_expect_copy(void *to, const void *from, size_t n_bytes);
/* The same for n_bytes that are going to be read and then written. A page that is read first becomes the system's one
 * page of zeros, and at the write a page of its own, for which every other thread is interrupted: two faults that cost
 * three times as much as this. */
void ty_pages_expect_update(void *at, size_t n_bytes);

#endif
