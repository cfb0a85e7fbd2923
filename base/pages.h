/* pages.h - memory in large pieces that is zero without being written: arenas of weights, the slab of a step.
 *
 * From 256 KiB on a piece is mapped by itself. Its pages are zero and become resident when they are touched for the
 * first time, by whichever thread needs them, so that nobody fills gigabytes with zeros before the first step. Below
 * that it comes from the heap, where sanitizers watch its ends.
 *
 * What is expected to be written is asked for in huge pages of 2 MiB, for as long as these are quick: one fault in
 * place of 512, and a step finds its addresses sooner. On a virtual machine whose host has not given it the memory yet
 * (or has taken it back: where free memory is reported to the host, that is what lay free for two seconds, in pieces of
 * 2 MiB and larger, and not what is in smaller ones), a huge page is 512 faults of the host at once. So a few slow ones
 * are the last. What 1 GB
 * takes of a thread's time on such a machine (AMD EPYC, Linux 6, 512 MB at a time):
 *
 *     0.08 s   asked for in huge pages that the host has          2.0 s   in huge pages that it has not
 *     0.28 s   asked for in pages of 4 KiB (0.26 to 0.31)         0.4 s   touched, a fault a page of 4 KiB
 */
#ifndef TY_BASE_PAGES_H
#define TY_BASE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Zeros, at a multiple of 64 (from 64 KiB on of 4096). NULL: no memory. */
void *ty_pages_new(size_t n_bytes);
/* n_bytes as it was asked for; NULL is fine. */
void ty_pages_free(void *pages, size_t n_bytes);
/* Bytes at `at`, of the n_bytes there, that are best made present by one job: up to where the next huge page may begin.
 */
size_t ty_pages_part(const void *at, size_t n_bytes);
/* Whether nobody has touched any of it since it was new: it is zeros, and reading it would cost a fault a page. False
 * also for little memory, and where the system does not tell (/proc/self/pagemap). */
bool ty_pages_are_new(const void *at, size_t n_bytes);
/* Before n_bytes at `at`, perhaps a mapped file, are read: makes their pages present with one call where the system can
 * (Linux 5.14), not with a fault a page. Only ever a saving of time. */
void ty_pages_expect_read(const void *at, size_t n_bytes);
/* The same for n_bytes that are going to be written, perhaps after they were read. A page that is read first becomes
 * the system's one page of zeros, and at the write a page of its own, for which every other thread is interrupted: two
 * faults that cost three times as much as this. */
void ty_pages_expect_update(void *at, size_t n_bytes);

#endif
