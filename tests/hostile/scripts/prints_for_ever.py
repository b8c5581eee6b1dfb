# status: timeout
# limits: OUTPUT_MB=0.2
print("the first line")
while True:
    print("x" * 1000)
