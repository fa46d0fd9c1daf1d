"""Speech: frames of features in HTK's format, and labels of frames in master label files.  Read ``utterances`` first."""
