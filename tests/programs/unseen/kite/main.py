"""What wind would have carried the kite to where it was seen?"""
import train

if __name__ == "__main__":
    trainer = train.Trainer(rate=0.8)
    for i in range(10):
        print("epoch", i, "distance^2", round(trainer.epoch(), 6), "wind", trainer.wind.numpy()[0])
