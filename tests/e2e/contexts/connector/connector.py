GREETING = "staged from an image"
