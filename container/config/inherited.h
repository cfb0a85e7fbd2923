/* inherited.h - the environment variables that the container reads at its start, in one place. */
#ifndef TY_CONTAINER_CONFIG_INHERITED_H
#define TY_CONTAINER_CONFIG_INHERITED_H

/* A field is NULL where the variable is not set. The strings are those of the environment that was given. */
typedef struct ty_inherited {
    const char *base_dir;        /* SAGEMAKER_BASE_DIR: in place of /opt/ml */
    const char *program;         /* SAGEMAKER_PROGRAM: the script; wins over the hyperparameter */
    const char *training_module; /* SAGEMAKER_TRAINING_MODULE */
    const char *region;          /* SAGEMAKER_REGION */
    const char *aws_region;      /* AWS_REGION */
    const char *job_name;        /* TRAINING_JOB_NAME: set by the platform and by local mode */
    const char *job_arn;         /* TRAINING_JOB_ARN: set by the platform alone */
    const char *python_path;     /* PYTHONPATH */
    const char *mp_parameters;   /* SM_HP_MP_PARAMETERS */
} ty_inherited;

/* envp: "NAME=value" strings, NULL at the end, as in main or environ. */
void ty_inherited_init(ty_inherited *inherited, const char *const *envp);

#endif
