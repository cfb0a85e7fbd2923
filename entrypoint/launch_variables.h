/* launch_variables.h - variables by which hosts of a job are told of each other; launch.h says what they hold. */
#ifndef TY_ENTRYPOINT_LAUNCH_VARIABLES_H
#define TY_ENTRYPOINT_LAUNCH_VARIABLES_H

#define TY_SECRET_VARIABLE     "TRAINYARD_SECRET"
#define TY_ADDRESSES_VARIABLE  "TRAINYARD_HOST_ADDRESSES"
#define TY_SERVER_KEY_VARIABLE "TRAINYARD_SERVER_KEY" /* of ranks of a job with parameter servers: 64 hex digits */

#endif
