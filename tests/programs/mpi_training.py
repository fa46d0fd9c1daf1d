"""Train a classifier in a session, on one worker or several, and keep its parameters; run by test_mpi.py.

mpi_training.py KIND SAMPLES RESULT [CHECKPOINT]
"""

import sys

import numpy as np

import cntk as C

KINDS = {
    "local": lambda learner: learner,
    "data_parallel": C.data_parallel_distributed_learner,
    "one_bit": lambda learner: C.data_parallel_distributed_learner(learner, num_quantization_bits=1, distributed_after=40),
    "three_bits": lambda learner: C.data_parallel_distributed_learner(learner, num_quantization_bits=3),
    "block_momentum": lambda learner: C.block_momentum_distributed_learner(learner, block_size=80),
}

kind, samples, result, *checkpoint = sys.argv[1:]
random = np.random.RandomState(0)
X = random.randn(200, 4).astype(np.float32)
Y = np.eye(3, dtype=np.float32)[(X @ random.randn(4, 3)).argmax(1)]
C.cntk_py.set_fixed_random_seed(1)
x, y = C.input_variable(4), C.input_variable(3)
model = C.layers.Sequential([C.layers.Dense(16, activation=C.tanh), C.layers.Dense(3)])(x)
criterion = C.combine([C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)])
learner = KINDS[kind](C.momentum_sgd(model.parameters, C.learning_parameter_schedule(0.5), C.momentum_schedule(0.9)))
trainer = C.Trainer(model, criterion, learner, [C.logging.ProgressPrinter()])
validations = []
session = C.training_session(
    trainer,
    (X, Y),
    20,
    max_samples=int(samples),
    progress_frequency=200,
    checkpoint_config=C.CheckpointConfig(*checkpoint, frequency=200) if checkpoint else None,
    cv_config=C.CrossValidationConfig(
        (X[:50], Y[:50]), frequency=400, minibatch_size=16, criterion=criterion,
        callback=lambda index, error, count, minibatches: validations.append((index, error, count, minibatches)) or True,
    ),
    test_config=C.TestConfig((X, Y), criterion=criterion),
)  # fmt: skip
session.train()
parameters = {f"parameter{index}": parameter.value for index, parameter in enumerate(model.parameters)}
np.savez(f"{result}.{C.Communicator.rank()}", seen=trainer.total_number_of_samples_seen, validations=validations, **parameters)
C.Communicator.finalize()
