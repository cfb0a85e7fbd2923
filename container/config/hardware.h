/* hardware.h - what this host has to compute with. */
#ifndef TY_CONTAINER_CONFIG_HARDWARE_H
#define TY_CONTAINER_CONFIG_HARDWARE_H

typedef struct ty_hardware {
    int num_cpus;    /* logical CPUs of the host that are online; not the container's quota */
    int num_gpus;    /* NVIDIA GPUs that the container can see; 0 without a driver */
    int num_neurons; /* accelerator cores of other makers: always 0, we drive none */
} ty_hardware;

/* Asks the system now. Starts no program and opens no GPU context. */
ty_hardware ty_hardware_detect(void);

#endif
