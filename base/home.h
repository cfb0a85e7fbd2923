/* home.h - where this program lies, for what came with it: a bundle is moved as a whole, so nothing in it is absolute.
 */
#ifndef TY_BASE_HOME_H
#define TY_BASE_HOME_H

/* The file of this program, "/x/bin/trainyard", also if it was started through a link; "" if the kernel does not tell,
 * or of more than 4094 bytes. One that was replaced meanwhile is not there any more. Lives for ever; from any thread.
 */
const char *ty_home_program(void);

/* The folder above that of the program's file: "/x" for "/x/bin/trainyard", "" where the program is "". */
const char *ty_home_folder(void);

#endif
