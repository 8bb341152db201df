-- Each task gets one device of which it uses 30 % and 1000 MiB.
set serverless.custom.job.gpu.enabled = true; set serverless.custom.job.task.gpus=1;
set emr.serverless.mgpu.core=30; -- percent
set emr.serverless.mgpu.memory=1000;
