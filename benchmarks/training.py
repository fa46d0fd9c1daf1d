"""A step of training a classifier in each framework: scores, loss, errors, gradients and update."""


def cntk_training(model, x, y, learner):
    """A function that takes a step on a minibatch: samples for the variable *x*, and labels for *y*."""
    import cntk as C

    criterion = C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)
    trainer = C.Trainer(model, criterion, [learner])

    def step(samples, labels):
        trainer.train_minibatch({x: samples, y: labels})

    return step


def torch_training(model, learner):
    """The same; a minibatch is what *model* makes scores ``(samples, classes)`` of, followed by class numbers ``(samples,)``."""
    import torch

    criterion = torch.nn.CrossEntropyLoss()

    def step(*minibatch):
        *samples, labels = minibatch
        learner.zero_grad()
        scores = model(*samples)
        criterion(scores, labels).backward()
        (scores.argmax(dim=1) != labels).sum()
        learner.step()

    return step
