/* home.h - where this program lies, for what came with it: a bundle is moved as a whole, so nothing in it is absolute.
 */
#ifndef TY_BASE_HOME_H
#define TY_BASE_HOME_H

/* The folder above that of the program's file: "/x" for "/x/bin/trainyard", also if it was started through a link. ""
 * if the kernel does not tell. Lives for ever; from any thread. */
const char *ty_home_folder(void);

#endif
